//! Groups that started in part, in words.

use crate::deadlock::{Ahead, Half, Release, Stuck, Whole};

use super::list;

/// A group in part, and those for whose end it waits: for any of them, or for all.
pub(crate) struct WaitsFor<'h> {
    pub(crate) half: &'h Half,
    pub(crate) others: Vec<&'h Half>,
    pub(crate) any: bool,
    /// Pods that run whole and must end as well.
    pub(crate) beside: Vec<&'h str>,
    /// It would start if it gave up what it holds itself.
    pub(crate) own: bool,
    /// There is room for it now, which these take.
    pub(crate) ahead: Option<&'h Ahead>,
    /// Not all was tried.
    pub(crate) cut: bool,
}

/// Most groups of a circle that are told of one by one.
const NAMED_MAX: usize = 12;

/// Most pods beside a group that are named.
const BESIDE_MAX: usize = 4;

/// Most of those that take the room of a group that are told of one by one.
const AHEAD_MAX: usize = 4;

/// What a circle of groups comes to, what else would end it, and which release breaks it: the groups
/// that are ended and one that then starts.
pub(crate) fn deadlock(
    circle: &[WaitsFor<'_>],
    freed: &Whole,
    release: Option<&Release<'_>>,
) -> String {
    let each = circle.iter().map(|one| {
        let beside = beside(one).map_or_else(String::new, |pods| format!(" and for {pods}"));
        format!("{} waits for what {}{beside}", part(one.half), holds(one))
    });
    let mut each: Vec<String> = each.take(NAMED_MAX).collect();
    if let Some(more) = circle.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        each.push(format!("and so on with {more} more"));
    }
    let cure = release.map_or_else(String::new, |Release { gone, starts, taken }| {
        let names: Vec<String> = gone.iter().map(|one| named(one)).collect();
        let held = gone.iter().map(|one| one.holds).fold(0, u32::saturating_add);
        let then = match taken {
            false => format!("{} starts then.", named(starts)),
            true => format!("{} can start then, but {TAKEN}.", named(starts)),
        };
        let names = list(&names);
        format!(" The least that breaks it is to end {names}, whole ({}): {then}", pods(held))
    });
    let beside = "Deadlock as long as the pods beside them run";
    let (what, then) = match freed {
        Whole::Nothing => ("Deadlock", "nothing else that ends would free one of them".to_owned()),
        Whole::Pod(pod, _) => {
            (beside, format!("the end of pod {pod} alone would free one, as may that of another"))
        }
        Whole::Several => {
            (beside, "only the end of several of those would free one of them".to_owned())
        }
        Whole::Unknown => (
            "Deadlock",
            "whether the end of pods beside them would free one was not tried".to_owned(),
        ),
    };
    format!(
        "{what}: {}. None of them can start while the others hold what they have, and {then}.{cure}",
        each.join("; ")
    )
}

/// A group that holds without progress and is in no circle: who is in its way, whether these wait for
/// each other, what that runs whole is, and whether it would start if it gave up what it holds itself.
///
/// `cause` says why nothing outside its group is, where that is so.
pub(crate) fn half_started(
    of: &WaitsFor<'_>,
    stuck: bool,
    freed: &Whole,
    cause: Option<&Stuck>,
) -> String {
    if !of.half.waits {
        let missing = of.half.needs.saturating_sub(of.half.holds);
        let (are, they) = if missing == 1 { ("is", "it is") } else { ("are", "they are") };
        return format!(
            "{} makes no progress: the {} that it lacks {are} not in the input. What it has it holds until \
             {they} made.",
            part(of.half),
            pods(missing)
        );
    }
    if let Some(ahead) = of.ahead {
        return format!("{} {}", part(of.half), goes_before(of.half, ahead));
    }
    if of.cut && of.others.is_empty() {
        return format!(
            "{} does not start. For whom it waits is not known: to find it out would take too long.",
            part(of.half)
        );
    }
    let mut said = match (of.others.is_empty(), cause) {
        (false, _) => waits_for_what(of, stuck),
        (true, Some(cause)) => kept_by(of, cause),
        (true, None) => "No other group that is not whole is in its way.".to_owned(),
    };
    match freed {
        Whole::Nothing | Whole::Unknown => {}
        Whole::Pod(pod, false) => said += &format!(" It starts once pod {pod} ends, which runs."),
        Whole::Pod(pod, true) => {
            said +=
                &format!(" The end of pod {pod}, which runs, would make room for it, but {TAKEN}.");
        }
        Whole::Several => said += " It starts once pods that run beside it have ended.",
    }
    if of.cut {
        said += " Not all was tried: that would take too long.";
    }
    if of.own {
        said += " What it holds itself keeps it where it is: once its own pods are ended it starts \
                 whole.";
    }
    format!("{} does not start. {said}", part(of.half))
}

/// "It waits for what podgroup/a holds, which does not wait for it."
fn waits_for_what(of: &WaitsFor<'_>, stuck: bool) -> String {
    let one = of.others.len() == 1;
    let which = match (stuck, one) {
        (true, true) => "is in a deadlock",
        (true, false) => "are in a deadlock",
        (false, true) => "does not wait for it",
        (false, false) => "do not wait for it",
    };
    let beside = beside(of).map_or_else(String::new, |pods| {
        format!(", and for {pods}: it starts once all of these have ended")
    });
    format!("It waits for what {}, which {which}{beside}.", holds(of))
}

/// The pods that run whole which must end as well, where there are some.
fn beside(of: &WaitsFor<'_>) -> Option<String> {
    match of.beside.as_slice() {
        [] => None,
        [one] => Some(format!("pod {one}, which runs whole")),
        some if some.len() <= BESIDE_MAX => {
            let names: Vec<String> = some.iter().map(|pod| (*pod).to_owned()).collect();
            Some(format!("pods {}, which run whole", list(&names)))
        }
        _ => Some("pods that run whole beside it".to_owned()),
    }
}

/// What keeps a group that nothing outside it frees by its end.
fn kept_by(of: &WaitsFor<'_>, cause: &Stuck) -> String {
    let none = "Nothing that runs outside its own group would let it start by its end";
    match cause {
        Stuck::Siblings(pods) if pods.len() <= BESIDE_MAX => {
            let named = if pods.len() == 1 { "pod" } else { "pods" };
            format!("{none}; without {named} {} of its own group it starts.", list(pods))
        }
        Stuck::Siblings(_) => format!("{none}; without other pods of its own group it starts."),
        Stuck::Otherwise if of.own => {
            format!("{none}: where it may be there is too little room for the rest.")
        }
        Stuck::Otherwise => format!(
            "{none}; `phalanx why -n {} {}` says what is in the way of the rest.",
            of.half.group.object.namespace, of.half.group
        ),
    }
}

/// That pods that come before a group take what it could have, at the end of a sentence.
const TAKEN: &str = "as things stand pods that come before it would take that room";

/// "does not start: there is room for the rest of it now, and pod/x, which comes before it, takes that."
fn goes_before(half: &Half, ahead: &Ahead) -> String {
    let room = "does not start: there is room for the rest of it now, and";
    match ahead {
        Ahead::One(group, priority) if *priority > half.priority => format!(
            "{room} {group}, which comes before it by its priority of {priority} over {}, takes that. It \
             starts if its own priority is above {priority}.",
            half.priority
        ),
        Ahead::One(group, _) => format!(
            "{room} {group}, which comes before it at the same priority, takes that. It starts if its own \
             priority is higher."
        ),
        Ahead::Several(all) => {
            let named: Vec<String> = all.iter().take(AHEAD_MAX).map(ToString::to_string).collect();
            let more = all.len().saturating_sub(AHEAD_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let who = match named.as_slice() {
                [] => String::new(),
                named => format!(" ({}{more})", named.join(", ")),
            };
            format!(
                "{room} what starts before it takes that{who}. It starts if its own priority is above theirs."
            )
        }
    }
}

/// "podgroup/a or podgroup/b holds", "podgroup/a and podgroup/b hold".
fn holds(of: &WaitsFor<'_>) -> String {
    let names: Vec<String> = of.others.iter().map(|one| named(one)).collect();
    match (names.as_slice(), of.any) {
        ([one], _) => format!("{one} holds"),
        ([head @ .., last], true) => format!("{} or {last} holds", head.join(", ")),
        (all, _) => format!("{} hold", list(all)),
    }
}

/// "podgroup/a", "b of compositepodgroup/c".
fn named(half: &Half) -> String {
    match &half.part {
        Some(part) => format!("{part} of {}", half.group),
        None => half.group.to_string(),
    }
}

/// "podgroup/a has 4 pods of the 8 it starts with, and"
fn part(half: &Half) -> String {
    let devices = match half.devices {
        0 => String::new(),
        1 => " (1 device)".to_owned(),
        many => format!(" ({many} devices)"),
    };
    format!(
        "{} has {} of the {} it starts with{devices}, and",
        named(half),
        pods(half.holds),
        half.needs
    )
}

fn pods(count: u32) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

#[cfg(test)]
mod tests {
    use phalanx_engine::{GroupKey, Name, Scoped};

    use super::*;

    fn waits_for<'h>(half: &'h Half, others: Vec<&'h Half>, cut: bool) -> WaitsFor<'h> {
        let beside = Vec::new();
        WaitsFor { half, others, any: true, beside, own: false, ahead: None, cut }
    }

    fn half(name: &str) -> Half {
        let object = Scoped { namespace: Name::new("n"), name: Name::new(name) };
        Half::of_test(GroupKey { object, kind: Name::new("podgroup") })
    }

    #[test]
    fn what_was_not_tried_is_said() {
        let (a, b) = (half("a"), half("b"));
        let all = half_started(&waits_for(&a, vec![&b], false), false, &Whole::Nothing, None);
        assert!(!all.contains("tried"), "{all}");
        let some = half_started(&waits_for(&a, vec![&b], true), false, &Whole::Nothing, None);
        assert!(some.ends_with("Not all was tried: that would take too long."), "{some}");
        let none = half_started(&waits_for(&a, vec![], true), false, &Whole::Nothing, None);
        assert!(none.contains("For whom it waits is not known"), "{none}");
    }

    #[test]
    fn pods_that_must_end_as_well_are_named() {
        let (a, b) = (half("a"), half("b"));
        let said = |pods: Vec<&'static str>| {
            let of = WaitsFor { beside: pods, ..waits_for(&a, vec![&b], false) };
            half_started(&of, false, &Whole::Nothing, None)
        };
        let one = said(vec!["o"]);
        assert!(
            one.ends_with(
                "It waits for what podgroup/b holds, which does not wait for it, and for pod o, which runs \
                 whole: it starts once all of these have ended."
            ),
            "{one}"
        );
        assert!(said(vec!["o", "p"]).contains("and for pods o and p, which run whole:"));
        assert!(
            said(vec!["a", "b", "c", "d", "e"]).contains("and for pods that run whole beside it")
        );
    }

    #[test]
    fn what_keeps_a_group_that_nothing_beside_it_frees_is_said() {
        let a = half("a");
        let said = |own, cause: &Stuck| {
            let of = WaitsFor { own, ..waits_for(&a, vec![], false) };
            half_started(&of, false, &Whole::Nothing, Some(cause))
        };
        let siblings = said(false, &Stuck::Siblings(vec!["x-0".to_owned()]));
        assert!(siblings.ends_with("; without pod x-0 of its own group it starts."), "{siblings}");
        let own = said(true, &Stuck::Otherwise);
        assert!(own.contains("there is too little room for the rest. What it holds"), "{own}");
        let none = said(false, &Stuck::Otherwise);
        assert!(none.contains("`phalanx why -n n podgroup/a` says"), "{none}");
    }

    #[test]
    fn of_a_long_circle_the_first_are_told_one_by_one() {
        let all: Vec<Half> = (0..14).map(|at| half(&format!("g{at}"))).collect();
        let circle = |from: usize| waits_for(&all[from], vec![&all[(from + 1) % 14]], false);
        let told = deadlock(&(0..14).map(circle).collect::<Vec<_>>(), &Whole::Nothing, None);
        assert!(told.contains("podgroup/g11 has") && !told.contains("podgroup/g12 has"), "{told}");
        assert!(told.contains("and so on with 2 more"), "{told}");
    }

    #[test]
    fn who_goes_before_is_named() {
        let a = half("a");
        let told = |ahead: &Ahead| {
            let of = WaitsFor { ahead: Some(ahead), ..waits_for(&a, vec![], false) };
            half_started(&of, false, &Whole::Nothing, None)
        };
        let six: Vec<GroupKey> = (0..6).map(|at| half(&format!("g{at}")).group).collect();
        let several = told(&Ahead::Several(six));
        assert!(
            several.contains("(podgroup/g0, podgroup/g1, podgroup/g2, podgroup/g3 and 2 more)"),
            "{several}"
        );
        let higher = told(&Ahead::One(half("b").group, 7));
        assert!(higher.contains("by its priority of 7 over 0"), "{higher}");
        let equal = told(&Ahead::One(half("b").group, 0));
        assert!(
            equal.contains("podgroup/b, which comes before it at the same priority"),
            "{equal}"
        );
    }
}
