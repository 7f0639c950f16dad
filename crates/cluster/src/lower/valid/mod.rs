//! Validation: what the API server refuses of a pod or of a workload by its own fields, whatever else
//! there is (`k8s.io/kubernetes/pkg/apis/*/validation`). It looks at what admission has made of a pod,
//! as the API server does. What webhooks of other kinds refuse stands with the kind, what other objects
//! forbid with admission.

mod claim;
mod cron;
mod name;
mod pod;
mod resources;
mod workload;

pub(crate) use claim::{CLAIM_SIZE, volume_claim};
pub(crate) use pod::pod;
pub(crate) use workload::{unmet, workload};

/// Most characters of what is said of a field.
const WHY_MAX: usize = 1000;

/// A field that the API server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// Its path: in the pod from `spec` or `metadata`, in a workload from its beginning.
    pub(crate) field: String,
    /// What is wrong, naming the field: for the end of a sentence in a pod, and a whole sentence in a
    /// workload.
    pub(crate) why: String,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found(Vec<Invalid>);

impl Found {
    fn add(&mut self, field: impl Into<String>, why: impl Into<String>) {
        let why: String = why.into();
        // What the input names may be as long as it likes; the sentence may not.
        let why = match why.char_indices().nth(WHY_MAX) {
            Some((end, _)) => format!("{}…", why.get(..end).unwrap_or_default()),
            None => why,
        };
        self.0.push(Invalid { field: field.into(), why });
    }
}
