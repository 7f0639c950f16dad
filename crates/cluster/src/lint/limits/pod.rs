//! What the API server would refuse of a pod's claims and of its containers' use of them. All else of
//! pods is left to it.

use std::collections::BTreeSet;

use phalanx_objects::core::{Container, PodResourceClaim, PodSpec};

use super::super::near::{cut, suggestion};
use super::form::Form;
use super::{Check, Rule};

impl Check<'_> {
    /// `validatePodResourceClaims`, and `validateResourceClaimNames` of each container.
    pub(super) fn pod(&mut self, spec: &PodSpec) {
        self.each("resourceClaims", &spec.resource_claims, |check, claim| check.entry(claim));
        let named = || spec.resource_claims.iter().map(|claim| claim.name.as_str());
        self.distinct("resourceClaims", named().enumerate(), "name");
        let named: Vec<&str> = named().collect();
        for (field, containers) in
            [("containers", &spec.containers), ("initContainers", &spec.init_containers)]
        {
            self.each(field, containers, |check, container| check.claims_of(container, &named));
        }
    }

    fn entry(&mut self, claim: &PodResourceClaim) {
        self.form("name", Form::Label, &claim.name);
        let (named, made) = (&claim.resource_claim_name, &claim.resource_claim_template_name);
        self.optional("resourceClaimName", Form::Subdomain, named.as_deref());
        self.optional("resourceClaimTemplateName", Form::Subdomain, made.as_deref());
        let name = cut(&claim.name);
        match (named, made) {
            (Some(_), Some(_)) => {
                let what = format!(
                    "the claim {name} has both a resourceClaimName and a resourceClaimTemplateName; \
                     one of them is allowed."
                );
                self.refuse(Rule::FieldValueInvalid, &what);
            }
            (None, None) => {
                let what = format!(
                    "the claim {name} needs a resourceClaimName or a resourceClaimTemplateName."
                );
                self.refuse(Rule::FieldValueInvalid, &what);
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }

    /// The claims that a container uses: each is one of the pod's, and no request of it is there
    /// twice.
    fn claims_of(&mut self, container: &Container, named: &[&str]) {
        let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
        let name = cut(&container.name);
        self.within("resources", |check| {
            check.each("claims", &container.resources.claims, |check, claim| {
                let (used, request) = (claim.name.as_str(), claim.request.as_str());
                if used.is_empty() {
                    let what = format!("container {name} uses a claim without a name.");
                    check.refuse_at("name", Rule::FieldValueRequired, &what);
                    return;
                }
                // Without a request the whole claim is meant.
                let again = seen.iter().any(|(of, part)| {
                    *of == used && (part.is_empty() || request.is_empty() || *part == request)
                });
                if again {
                    let what = format!("container {name} uses the claim {} twice.", cut(used));
                    check.refuse(Rule::FieldValueDuplicate, &what);
                }
                seen.insert((used, request));
                if !request.is_empty() {
                    check.form("request", Form::Label, request);
                }
                if !named.contains(&used) {
                    let near = suggestion(used, named, "entry in resourceClaims");
                    let what = format!(
                        "container {name} uses the claim {}, which the pod does not have among its \
                         resourceClaims. {near}",
                        cut(used)
                    );
                    check.refuse_at("name", Rule::FieldValueNotFound, &what);
                }
            });
        });
    }
}
