//! What pods ask of the pods around them, and which pods are meant.

use phalanx_engine::{PodRules, PodSelectorId, Reason};

use super::World;

fn pod(name: &str, labels: &str, spec: &str) -> String {
    let containers = if spec.contains("containers") { "" } else { "containers: [{name: c}], " };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec: {{{containers}{spec}}}\n\
         ---\n"
    )
}

fn rules(world: &World, name: &str) -> PodRules {
    let request = &world.group("pod", name).expect("the pod").roles[0].request;
    request.near.as_deref().cloned().unwrap_or_default()
}

fn matched(world: &World, name: &str) -> Vec<PodSelectorId> {
    world.group("pod", name).expect("the pod").roles[0].request.matched.to_vec()
}

fn anti(term: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
    )
}

#[test]
fn host_ports_are_those_of_containers_and_sidecars() {
    let world = World::of(
        &[
            pod(
                "own",
                "",
                "containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 8081}]}], \
                 initContainers: [{name: c, ports: [{hostPort: 1}]}, \
                 {restartPolicy: Always, ports: [{hostPort: 2, hostIP: 10.0.0.1, protocol: UDP}]}]",
            ),
            pod("host", "", "hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]"),
        ]
        .concat(),
    );
    let ports = |name: &str| -> Vec<String> {
        let request = &world.group("pod", name).expect("the pod").roles[0].request;
        let text =
            |p: &phalanx_engine::HostPort| format!("{}/{} {}", p.port, p.protocol, p.address);
        request.ports.iter().map(text).collect()
    };
    assert_eq!(ports("own"), ["2/UDP 10.0.0.1", "8081/TCP 0.0.0.0"]);
    assert_eq!(ports("host"), ["80/TCP 0.0.0.0"]);
}

#[test]
fn a_pod_is_meant_while_a_rule_that_means_it_is_there() {
    let term = "{topologyKey: zone, labelSelector: {matchLabels: {app: web}}}";
    let mut world = World::of(
        &[
            pod("web", "app: web", "containers: [{name: c}]"),
            pod("db", "app: db", "containers: [{name: c}]"),
        ]
        .concat(),
    );
    assert_eq!((matched(&world, "web"), matched(&world, "db")), (vec![], vec![]));
    world.add(&pod("quiet", "", &anti(term)));
    let meant = rules(&world, "quiet").anti[0].pods;
    assert_eq!((matched(&world, "web"), matched(&world, "db")), (vec![meant], vec![]));
    world.add(&pod("quiet", "", "containers: [{name: c}]"));
    assert_eq!(matched(&world, "web"), []);
    // One that has ended means nobody.
    let ended =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: over}\nstatus: {phase: Failed}\nspec: ";
    world.add(&format!("{ended}{{{}}}\n", anti(term)));
    assert_eq!(matched(&world, "web"), []);
}

#[test]
fn namespaces_are_named_or_told_by_their_labels() {
    let of = |term: &str| {
        let other = "apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: team}\n---\n\
                     apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {of: us}}\n---\n\
                     apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n---\n";
        let term = anti(&format!("{{topologyKey: zone, labelSelector: {{}}, {term}}}"));
        let world = World::of(&[pod("own", "", &term), other.to_owned()].concat());
        (matched(&world, "own").len(), matched(&world, "other").len())
    };
    assert_eq!(of(""), (1, 0));
    assert_eq!(of("namespaces: [team]"), (0, 1));
    assert_eq!(of("namespaceSelector: {}"), (1, 1));
    assert_eq!(of("namespaceSelector: {matchLabels: {of: us}}"), (0, 1));
    assert_eq!(of("namespaceSelector: {matchLabels: {of: us}}, namespaces: [default]"), (1, 1));
    let by_name = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}";
    assert_eq!(of(by_name), (0, 1));
}

#[test]
fn keys_of_labels_are_merged_as_the_api_server_does() {
    let term = "{topologyKey: zone, labelSelector: {}, matchLabelKeys: [rev, none], \
                mismatchLabelKeys: [tenant]}";
    let created = "apiVersion: v1\nkind: Pod\nmetadata: {name: created, labels: {rev: a}, \
                   creationTimestamp: 2026-01-01T00:00:00Z}\nspec: ";
    let world = World::of(
        &[
            pod("new", "rev: a, tenant: one", &anti(term)),
            pod("same", "rev: a, tenant: two", ""),
            pod("mine", "rev: a, tenant: one", ""),
            pod("later", "rev: b", ""),
            format!("{created}{{{}}}\n", anti(term)),
        ]
        .concat(),
    );
    let meant = rules(&world, "new").anti[0].pods;
    let is_meant = |name: &str| matched(&world, name).contains(&meant);
    assert!(is_meant("same") && !is_meant("mine") && !is_meant("later"));
    // What the API server has stored is not merged again: it means every pod.
    let all = rules(&world, "created").anti[0].pods;
    assert!(matched(&world, "later").contains(&all));
}

#[test]
fn a_spread_reads_its_defaults_and_counts_nobody_by_an_empty_selector() {
    let spread = |more: &str| {
        let rule = "topologyKey: zone, maxSkew: 2, whenUnsatisfiable: DoNotSchedule";
        pod("p", "app: web", &format!("topologySpreadConstraints: [{{{rule}{more}}}]"))
    };
    let rule = |more: &str| rules(&World::of(&spread(more)), "p").spread[0].clone();
    let plain = rule(", labelSelector: {matchLabels: {app: web}}");
    assert!(plain.own && plain.pods.is_some());
    assert_eq!((plain.max_skew, plain.min_domains), (2, 1));
    assert!(plain.honors_affinity && !plain.honors_taints);
    let empty = rule(", labelSelector: {}, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor");
    assert!(empty.own && empty.pods.is_none() && !empty.honors_affinity && empty.honors_taints);
    let none = rule("");
    assert!(!none.own && none.pods.is_none());
    let other = rule(", labelSelector: {matchLabels: {app: db}}");
    assert!(!other.own);
}

#[test]
fn a_selector_that_the_api_server_refuses_is_said_of_the_pod_and_dropped_of_one_on_a_node() {
    let bad = "{topologyKey: zone, labelSelector: {matchExpressions: [{key: app, operator: In}]}}";
    let spread = "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, \
                  whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: -x-}}}]";
    let world = World::of(
        &[
            pod("waits", "", &anti(bad)),
            pod("spread", "", spread),
            pod("there", "", &format!("nodeName: n1, {}", anti(bad))),
        ]
        .concat(),
    );
    assert_eq!(world.fault("pod", "waits"), Some(Reason::RequestUnsupported));
    assert_eq!(world.fault("pod", "spread"), Some(Reason::RequestUnsupported));
    assert_eq!(rules(&world, "there"), PodRules::default());
}

#[test]
fn a_jobs_pods_have_its_name_and_a_nomination_is_the_waiting_pods() {
    let near = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                [{topologyKey: zone, labelSelector: {matchLabels: {job-name: j}}}]}}";
    let world = World::of(&format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{template: {{spec: {{{near}}}}}}}\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nstatus: {{nominatedNodeName: n1}}\n"
    ));
    let request = &world.group("job", "j").expect("the job").roles[0].request;
    let near = request.near.as_ref().and_then(|near| near.affinity.as_ref()).expect("affinity");
    assert!(request.matched.contains(&near.pods));
    let nominated = world.member("p").expect("p").nominated.clone();
    assert_eq!(nominated.map(|node| node.0.to_string()).as_deref(), Some("n1"));
}

/// Whom a pod that waits is spread with by default, as text.
fn spread_with(world: &World, kind: &str, name: &str) -> String {
    let request = &world.group(kind, name).expect("the group").roles[0].request;
    let Some(scored) = &request.scored else { return String::new() };
    let pods: Vec<PodSelectorId> = scored.spread.iter().filter_map(|rule| rule.pods).collect();
    pods.first().map_or_else(String::new, |id| format!("{:?}", world.lowering.pods_meant(*id)))
}

fn service(selector: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{selector: {selector}}}\n---\n"
    )
}

#[test]
fn pods_of_services_and_controllers_are_spread_while_these_are_there() {
    let owned = |kind: &str, version: &str| {
        let owner = format!("{{apiVersion: {version}, kind: {kind}, name: set, controller: true}}");
        pod("web", "app: web, tier: front", "")
            .replace("{name: web", &format!("{{name: web, uid: u, ownerReferences: [{owner}]"))
    };
    let mut world = World::new(crate::lower::Lowering::new(Default::default()).for_scores());
    world.add(&owned("ReplicationController", "v1"));
    assert_eq!(spread_with(&world, "pod", "web"), "");
    world.add(&service("{tier: front}"));
    let by_service = spread_with(&world, "pod", "web");
    assert!(by_service.contains("tier") && !by_service.contains("app"), "{by_service}");
    world.add(
        "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: set}\n\
         spec: {template: {metadata: {labels: {app: web}}}}\n",
    );
    let by_both = spread_with(&world, "pod", "web");
    assert!(by_both.contains("tier") && by_both.contains("app"), "{by_both}");
    world.add(&service("{tier: back}"));
    assert!(!spread_with(&world, "pod", "web").contains("tier"));
    world.add(&owned("StatefulSet", "apps/v1"));
    assert_eq!(spread_with(&world, "pod", "web"), "", "a set that is not there selects nobody");
    world.add(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: set}\nspec: {replicas: 0, \
         selector: {matchExpressions: [{key: app, operator: Exists}]}}\n",
    );
    assert!(spread_with(&world, "pod", "web").contains("Exists"));
}

#[test]
fn who_says_how_it_is_spread_is_not_spread_by_default() {
    let rule = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: \
                ScheduleAnyway, labelSelector: {}}]";
    let mut world = World::new(crate::lower::Lowering::new(Default::default()).for_scores());
    world.add(&[pod("web", "app: web", rule), service("{app: web}")].concat());
    assert_eq!(spread_with(&world, "pod", "web"), "");
    world.add(&pod("web", "app: web", ""));
    assert_ne!(spread_with(&world, "pod", "web"), "");
    let plain = World::of(&[service("{app: web}"), pod("web", "app: web", "")].concat());
    let request = &plain.group("pod", "web").expect("the pod").roles[0].request;
    assert_eq!(request.scored, None, "nothing is kept where nodes are not scored");
}
