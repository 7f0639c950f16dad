//! Which of the kinds that are read the server serves, in which version, and under which path.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use kube::Client;
use phalanx_objects::{Kind, ObjectRef};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A kind as the server serves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Served {
    /// Group and version.
    pub api_version: String,
    /// Its name in paths, such as `pods`.
    pub plural: String,
}

/// The kinds that are served.
pub(crate) type Board = BTreeMap<Kind, Served>;

impl Served {
    /// The path of all objects of the kind.
    pub(crate) fn all(&self) -> String {
        format!("{}/{}", self.root(), self.plural)
    }

    /// The path of the objects of the kind in a namespace; of all where the namespace is empty.
    pub(crate) fn within(&self, namespace: &str) -> String {
        match namespace {
            "" => self.all(),
            _ => format!("{}/namespaces/{namespace}/{}", self.root(), self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn one(&self, object: &ObjectRef) -> String {
        format!("{}/{}", self.within(&object.namespace), object.name)
    }

    fn root(&self) -> String {
        match self.api_version.contains('/') {
            true => format!("/apis/{}", self.api_version),
            false => format!("/api/{}", self.api_version),
        }
    }
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

#[derive(Default, Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Asks the server which of the kinds it serves: each in the version that we like best of those that it
/// has.
///
/// # Errors
/// When it does not answer, so that it is not known.
pub(crate) async fn discover(
    client: &Client,
    kinds: impl Iterator<Item = Kind> + Clone,
) -> Result<Board, kube::Error> {
    let groups: Groups = get(client, "/apis").await?;
    let versions = groups.groups.into_iter().flat_map(|group| group.versions);
    let mut served: BTreeSet<String> = versions.map(|version| version.group_version).collect();
    served.insert("v1".to_owned());
    let mut resources: BTreeMap<&'static str, Resources> = BTreeMap::new();
    let wanted = kinds.clone().flat_map(|kind| kind.versions()).copied();
    for version in wanted.filter(|version| served.contains(*version)).collect::<BTreeSet<_>>() {
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let found = match get(client, &format!("{root}/{version}")).await {
            Ok(found) => found,
            // It went in between.
            Err(kube::Error::Api(status)) if status.code == 404 => Resources::default(),
            Err(error) => return Err(error),
        };
        resources.insert(version, found);
    }
    let find = |kind: Kind| {
        kind.versions().iter().find_map(|version| {
            let found = resources.get(version)?.resources.iter().find(|found| found.is(kind))?;
            let api_version = (*version).to_owned();
            Some((kind, Served { api_version, plural: found.name.clone() }))
        })
    };
    Ok(kinds.filter_map(find).collect())
}

impl Resource {
    /// Whether it is the resource of this kind that can be listed: not a part of one, such as `pods/status`.
    fn is(&self, kind: Kind) -> bool {
        let can = |verb: &str| self.verbs.iter().any(|v| v == verb);
        self.kind == kind.as_str() && !self.name.contains('/') && can("list") && can("watch")
    }
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(api_version: &str, plural: &str) -> Served {
        Served { api_version: api_version.to_owned(), plural: plural.to_owned() }
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let of = |namespace: &str, name: &str| ObjectRef {
            kind: Kind::Pod,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let pods = served("v1", "pods");
        assert_eq!(pods.all(), "/api/v1/pods");
        assert_eq!(pods.one(&of("ml", "a")), "/api/v1/namespaces/ml/pods/a");
        let slices = served("resource.k8s.io/v1", "resourceslices");
        assert_eq!(slices.one(&of("", "s")), "/apis/resource.k8s.io/v1/resourceslices/s");
    }
}
