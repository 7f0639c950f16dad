//! Keys of labels and taints and names of resources: which of their words stay. They are names that
//! anybody may give, and Kubernetes, controllers and makers of devices have given many. A domain of
//! theirs stays, and so does a word that they use; every other word is hidden, the same wherever the key
//! stands.

use super::fields::Act;
use super::names::parts_of;
use super::vocabulary::{DOMAINS, KEY_WORDS};

/// What stands before the name of a resource in a quota.
const OF_QUOTA: [&str; 2] = ["requests.", "limits."];

/// The domain of the resources that classes serve by their own names, and that of their quotas.
const BY_CLASS: &str = "deviceclass.resource.kubernetes.io";
const OF_CLASS: &str = ".deviceclass.resource.k8s.io";

/// Shows the words of a key to `sink`, each with what becomes of it.
pub(super) fn key(text: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
    let (before, rest) = OF_QUOTA
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix).filter(|rest| rest.contains('/')))
        .map_or(("", text.as_str()), |rest| text.split_at(text.len() - rest.len()));
    let mut out = before.to_owned();
    match rest.split_once('/') {
        // Names of DeviceClasses stay everywhere.
        Some((domain, _)) if domain == BY_CLASS || domain.ends_with(OF_CLASS) => {
            sink(Act::Keep, &mut rest.to_owned());
            out.push_str(rest);
        }
        Some((domain, id)) => {
            let own = DOMAINS.iter().find_map(|known| {
                let left = domain.strip_suffix(known)?;
                (left.is_empty() || left.ends_with('.')).then_some(left)
            });
            match own {
                Some(left) => {
                    each_word(left, true, &mut out, sink);
                    let known = domain.get(left.len()..).unwrap_or_default();
                    sink(Act::Keep, &mut known.to_owned());
                    out.push_str(known);
                }
                None => each_word(domain, false, &mut out, sink),
            }
            out.push('/');
            each_word(id, true, &mut out, sink);
        }
        None => each_word(rest, true, &mut out, sink),
    }
    *text = out;
}

/// Shows the words of a part, of which those that are known may stay.
fn each_word(part: &str, known: bool, out: &mut String, sink: &mut impl FnMut(Act, &mut String)) {
    for (is_word, word) in parts_of(part) {
        let stays = !is_word || known && KEY_WORDS.binary_search(&word).is_ok();
        let mut word = word.to_owned();
        sink(if stays { Act::Keep } else { Act::Mask }, &mut word);
        out.push_str(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_key_stays() {
        assert!(KEY_WORDS.is_sorted());
        for (text, masked) in [
            ("kubernetes.io/hostname", "kubernetes.io/hostname"),
            ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"),
            ("nvidia.com/gpu.tenant", "nvidia.com/gpu.X"),
            ("acme.nvidia.com/gpu", "X.nvidia.com/gpu"),
            ("example.com/gpu", "X.X/gpu"),
            ("requests.example.com/gpu", "requests.X.X/gpu"),
            ("job-name", "job-name"),
            ("acme-zone", "X-zone"),
            ("requests.cpu", "requests.cpu"),
            ("count/jobs.batch", "X/jobs.batch"),
            (
                "gold.deviceclass.resource.k8s.io/devices",
                "gold.deviceclass.resource.k8s.io/devices",
            ),
        ] {
            let mut key_text = text.to_owned();
            key(&mut key_text, &mut |act, word| {
                if act == Act::Mask {
                    *word = "X".to_owned();
                }
            });
            assert_eq!(key_text, masked);
        }
    }
}
