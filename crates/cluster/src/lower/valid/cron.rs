//! The schedule of a CronJob, as the CronJob controller's parser reads it (`robfig/cron`, standard
//! form): five fields or a descriptor.

/// Name, lowest and highest value of each field, and the words that stand for numbers from the lowest.
const FIELDS: [(&str, u32, u32, &[&str]); 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    (
        "month",
        1,
        12,
        &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ),
    ("day of the week", 0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What is wrong with a schedule, for the end of a sentence.
pub(super) fn wrong(schedule: &str) -> Option<String> {
    if schedule.is_empty() {
        return Some("it is missing".to_owned());
    }
    if schedule.contains("TZ") {
        return Some("the time zone belongs in `spec.timeZone`".to_owned());
    }
    if schedule.starts_with('@') {
        let known = DESCRIPTORS.contains(&schedule) || schedule.starts_with("@every ");
        return (!known).then(|| format!("{schedule} is not known"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!("it has {} fields and must have 5", fields.len()));
    }
    let mut all = fields.iter().zip(&FIELDS);
    all.find_map(|(text, field)| {
        let mut ranges = text.split(',').filter(|range| !range.is_empty());
        let bad = ranges.find(|range| !is_range(range, field))?;
        let (name, least, most, _) = field;
        Some(format!("{bad} is no {name}, which goes from {least} to {most}"))
    })
}

fn is_range(text: &str, (_, least, most, words): &(&str, u32, u32, &[&str])) -> bool {
    let value = |text: &str| {
        let word = words.iter().position(|word| word.eq_ignore_ascii_case(text));
        let word = word.and_then(|at| u32::try_from(at).ok()).map(|at| at + least);
        word.or_else(|| text.parse().ok())
    };
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    if step.is_some_and(|step| !step.parse::<u32>().is_ok_and(|step| step > 0)) {
        return false;
    }
    let bounds = match range.split_once('-') {
        _ if range == "*" || range == "?" => return true,
        Some((first, last)) => value(first).zip(value(last)),
        None => value(range).map(|one| (one, one)),
    };
    bounds.is_some_and(|(first, last)| *least <= first && first <= last && last <= *most)
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn a_schedule_is_read_as_the_api_server_reads_it() {
        let right = [
            "@daily",
            "@every 1h",
            "* * * * *",
            "*/5,3 * * * *",
            "0 0 ? * *",
            "0 0 * jan MON",
            "0-10/2 1,2 1-31 * 0-6",
        ];
        for schedule in right {
            assert_eq!(wrong(schedule), None, "{schedule}");
        }
        let refused = [
            "",
            "@foo",
            "* * *",
            "0 0 * * * *",
            "61 * * * *",
            "*/0 * * * *",
            "0 0 * * 7",
            "5-1 * * * *",
            "0 0 L * *",
            "TZ=UTC * * * * *",
        ];
        for schedule in refused {
            assert!(wrong(schedule).is_some(), "{schedule}");
        }
    }
}
