//! The scenarios: each can be read, names reasons that exist, and every reason has one where it
//! decides and one where it just doesn't. Whether they hold is for the tests of `crates/sim`.

use phalanx_engine::Reason;
use phalanx_sim::Scenario;

use super::Breach;
use crate::source::Tree;

/// Breaches in the scenarios.
pub(super) fn scenarios(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let (mut decided, mut spared) = (Vec::new(), Vec::new());
    for file in tree.files.iter().filter(|f| f.path.starts_with("scenarios/")) {
        let scenario = match Scenario::parse(&file.text) {
            Ok(scenario) => scenario,
            Err(error) => {
                breaches.push(Breach::of(&file.path, error.to_string()));
                continue;
            }
        };
        for code in scenario.decides.iter().chain(&scenario.spares) {
            if !Reason::ALL.iter().any(|reason| reason.code() == code) {
                breaches.push(Breach::of(&file.path, format!("`{code}` is no code of a reason.")));
            }
        }
        decided.extend(scenario.decides);
        spared.extend(scenario.spares);
    }
    for reason in Reason::ALL {
        let code = reason.code().to_owned();
        if !decided.contains(&code) {
            breaches.push(Breach::of("scenarios", format!("`{code}` decides in none of them.")));
        }
        if !spared.contains(&code) {
            let message =
                format!("`{code}` is spared in none of them: one where it all but comes.");
            breaches.push(Breach::of("scenarios", message));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::File;

    #[test]
    fn every_reason_needs_both_kinds_of_scenario() {
        let text = "rule: A.\ndecides: [NoNodes, Nonsense]\nexpect: {}\n";
        let tree = Tree::of(vec![
            File { path: "scenarios/a.yaml".into(), text: text.into() },
            File { path: "scenarios/b.yaml".into(), text: "rule: [\n".into() },
        ]);
        let breaches = scenarios(&tree);
        assert_eq!(breaches.len(), 2 * Reason::ALL.len() - 1 + 2);
    }
}
