//! Objects that declare gangs and are refused, or say what does not go together: what is told, on which
//! object and field, and whether the pods are kept back.

use super::World;

const UPSTREAM: &str = "scheduling.k8s.io/v1alpha3";
const KAI: &str = "scheduling.run.ai/v2alpha2";
const TOGETHER: &str = "metadata.annotations[\"kueue.x-k8s.io/podset-group-name\"]";
const LAYERS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";

fn object(api: &str, kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, namespace: default}}\nspec: {spec}\n---\n"
    )
}

fn pod(name: &str, meta: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default{meta}}}\n\
         spec: {{{spec}containers: [{{name: main}}]}}\n---\n"
    )
}

/// A pod of the PodGroup g of Kubernetes.
fn member() -> String {
    pod("p", "", "schedulingGroup: {podGroupName: g}, ")
}

fn composite(name: &str, parent: &str) -> String {
    let parent = match parent {
        "" => String::new(),
        name => format!("parentCompositePodGroupName: {name}, "),
    };
    let spec = format!("{{{parent}schedulingPolicy: {{gang: {{minGroupCount: 1}}}}}}");
    object(UPSTREAM, "CompositePodGroup", name, &spec)
}

fn under(parent: &str) -> String {
    let spec = format!(
        "{{parentCompositePodGroupName: {parent}, schedulingPolicy: {{gang: {{minCount: 1}}}}}}"
    );
    object(UPSTREAM, "PodGroup", "g", &spec)
}

/// What is told, each with its object and field.
fn told(world: &World) -> Vec<String> {
    let about = |finding: &crate::finding::Finding| {
        finding.object.as_ref().map_or_else(String::new, ToString::to_string)
    };
    let told = world.findings.iter();
    told.map(|finding| format!("{} {}: {}", about(finding), finding.path, finding.message))
        .collect()
}

/// Asserts that one thing is told, which has these words in it, and whether pods are kept back.
fn refuses(text: &str, kind: &str, name: &str, words: &[&str]) {
    let world = World::of(text);
    let told = told(&world);
    assert!(
        told.iter().any(|told| words.iter().all(|word| told.contains(word))),
        "{words:?}: {told:#?}"
    );
    let group = world.group(kind, name).expect("the gang is there");
    assert!(group.roles[0].admits.is_some(), "its pods are kept back: {words:?}");
}

#[test]
fn groups_of_groups_that_go_in_a_circle_are_refused() {
    let text = composite("a", "b") + &composite("b", "a") + &under("a") + &member();
    let at = "CompositePodGroup default/b spec.parentCompositePodGroupName";
    refuses(&text, "compositepodgroup", "b", &[at, "go in a circle, a under b under a"]);
    let text = composite("a", "a") + &under("a") + &member();
    let at = "CompositePodGroup default/a spec.parentCompositePodGroupName";
    refuses(&text, "compositepodgroup", "a", &[at, "it is its own parent"]);
    let text = composite("a", "b") + &composite("b", "") + &under("a") + &member();
    let world = World::of(&text);
    assert_eq!(told(&world), Vec::<String>::new());
    assert!(world.group("compositepodgroup", "b").expect("a gang").roles[0].admits.is_none());
}

#[test]
fn groups_of_groups_are_as_deep_as_kubernetes_goes() {
    let chain = |many: usize| {
        let mut text = composite("c1", "");
        for at in 2..=many {
            text += &composite(&format!("c{at}"), &format!("c{}", at - 1));
        }
        text + &under(&format!("c{many}")) + &member()
    };
    let at = "PodGroup default/g spec.parentCompositePodGroupName";
    refuses(&chain(5), "compositepodgroup", "c1", &[at, "5 CompositePodGroups are above it"]);
    let world = World::of(&chain(4));
    assert!(told(&world)[0].contains("Too deep: 4 CompositePodGroups"), "{:?}", told(&world));
    assert!(world.group("compositepodgroup", "c1").expect("a gang").roles[0].admits.is_none());
    assert_eq!(told(&World::of(&chain(3))), Vec::<String>::new());
    // Of more than are followed the eighth stands for the first.
    for many in [9, 20] {
        let last = format!("c{}", many - 7);
        let told = [at, "more than 8 CompositePodGroups are above it (the nearest are c"];
        refuses(&chain(many), "compositepodgroup", &last, &told);
    }
    refuses(&chain(8), "compositepodgroup", "c1", &[at, ": 8 CompositePodGroups are above it (c8"]);
}

#[test]
fn of_four_groups_of_groups_the_topmost_names_no_level() {
    let at = "PodGroup default/g spec.parentCompositePodGroupName";
    let named = |which: &str| {
        let each = |(name, parent): (&str, &str)| {
            let text = composite(name, parent);
            match name == which {
                true => text.replace(
                    "schedulingPolicy",
                    "schedulingConstraints: {topology: [{key: a}]}, schedulingPolicy",
                ),
                false => text,
            }
        };
        let all = [("c1", ""), ("c2", "c1"), ("c3", "c2"), ("c4", "c3")].map(each);
        all.concat() + &under("c4") + &member()
    };
    let words = [at, "Refused by kube-scheduler", "c1, the topmost, names a level of topology"];
    refuses(&named("c1"), "compositepodgroup", "c1", &words);
    let told = told(&World::of(&named("c2")));
    assert!(told.iter().any(|told| told.contains("Too deep: 4 CompositePodGroups")), "{told:?}");
    assert!(!told.iter().any(|told| told.contains("Refused")), "{told:?}");
}

#[test]
fn a_podgroup_may_have_the_name_of_what_it_is_under() {
    let text = composite("serve", "") + &composite("g", "serve") + &under("g") + &member();
    let text = text + &composite("west", "serve");
    let lone = object(
        UPSTREAM,
        "PodGroup",
        "w",
        "{parentCompositePodGroupName: west, schedulingPolicy: {gang: {minCount: 1}}}",
    );
    let world = World::of(&(text + &lone));
    let group = world.group("compositepodgroup", "serve").expect("a gang");
    assert!(group.roles[0].admits.is_none());
    let parts: Vec<(&str, Option<u16>, usize)> =
        group.parts.all.iter().map(|p| (p.name.as_str(), p.under, p.least.len())).collect();
    assert_eq!(parts, [("g", None, 1), ("west", None, 0)]);
}

#[test]
fn a_podgroup_that_the_api_server_refuses_places_no_pod() {
    let policy = "PodGroup default/g spec.schedulingPolicy";
    let gang = "schedulingPolicy: {gang: {minCount: 1}}";
    for (spec, words) in [
        (
            "{schedulingPolicy: {gang: {minCount: 1}, basic: {}}}".to_owned(),
            [policy, "it has both"],
        ),
        ("{schedulingPolicy: {}}".to_owned(), [policy, "it has neither"]),
        (
            format!("{{{gang}, schedulingConstraints: {{topology: [{{key: a}}, {{key: b}}]}}}}"),
            ["PodGroup default/g spec.schedulingConstraints.topology", "names 2 levels"],
        ),
    ] {
        refuses(&(object(UPSTREAM, "PodGroup", "g", &spec) + &member()), "podgroup", "g", &words);
    }
}

#[test]
fn minima_of_groups_below_others_are_looked_at() {
    let top = object(
        UPSTREAM,
        "CompositePodGroup",
        "top",
        "{schedulingPolicy: {gang: {minGroupCount: 0}}}",
    );
    let group = under("top").replace("minCount: 1", "minCount: -3");
    let told = told(&World::of(&(top + &group + &member())));
    for (at, what) in [
        (
            "CompositePodGroup default/top spec.schedulingPolicy.gang.minGroupCount",
            "number of groups",
        ),
        ("PodGroup default/g spec.schedulingPolicy.gang.minCount", "-3 is no number of pods"),
    ] {
        assert!(told.iter().any(|told| told.contains(at) && told.contains(what)), "{told:#?}");
    }
}

#[test]
fn subgroups_of_kai_are_held_to_its_webhook() {
    let of = |sub: &str| {
        pod(
            "p",
            &format!(
                ", labels: {{kai.scheduler/subgroup-name: {sub}}}, annotations: {{pod-group-name: k}}"
            ),
            "",
        )
    };
    for (spec, words) in [
        (
            "{subGroups: [{name: a, parent: b}, {name: b, parent: a}]}",
            ["spec.subGroups[0].parent", "a is under itself"],
        ),
        (
            "{subGroups: [{name: a, parent: z, minMember: 1}]}",
            ["spec.subGroups[0].parent", "under z, which is not there"],
        ),
        ("{subGroups: [{name: Aa, minMember: 1}]}", ["spec.subGroups[0].name", "upper case"]),
        (
            "{subGroups: [{name: a, minMember: 1}, {name: a, minMember: 2}]}",
            ["spec.subGroups[1].name", "two subgroups are called a"],
        ),
        (
            "{minSubGroup: 2, subGroups: [{name: a, minMember: 1}]}",
            [
                "spec.minSubGroup",
                "2 of the subgroups of the PodGroup must start, and it has 1 subgroup",
            ],
        ),
        (
            "{subGroups: [{name: a, minSubGroup: 1}]}",
            [
                "spec.subGroups[0].minSubGroup",
                "1 of the subgroups of subgroup a must start, and it has 0 subgroups",
            ],
        ),
        (
            "{subGroups: [{name: a, minMember: 1, minSubGroup: 1}]}",
            ["spec.subGroups[0].minMember", "subgroup a has both minMember and minSubGroup"],
        ),
        (
            "{minMember: 1, minSubGroup: 1, subGroups: [{name: a, minMember: 1}]}",
            ["spec.minMember", "it has both minMember and minSubGroup"],
        ),
        ("{subGroups: [{name: a}]}", ["spec.subGroups[0].minMember", "a has no minMember"]),
        (
            "{subGroups: [{name: b, minMember: 2}, {name: a, parent: b, minMember: 1}]}",
            ["spec.subGroups[0].minMember", "b has others under it"],
        ),
    ] {
        let text = object(KAI, "PodGroup", "k", spec) + &of("a");
        refuses(&text, "podgroup.scheduling.run.ai", "k", &words);
    }
    let fine = object(
        KAI,
        "PodGroup",
        "k",
        "{minSubGroup: 1, subGroups: [{name: b, minSubGroup: 1}, {name: a, parent: b, minMember: 1}]}",
    );
    assert_eq!(told(&World::of(&(fine.clone() + &of("a")))), Vec::<String>::new());
    let stray = told(&World::of(&(fine + &of("zz"))));
    assert!(stray[0].starts_with("Pod default/p metadata.labels"), "{stray:?}");
    assert!(stray[0].contains("PodGroup k has no subgroup zz, but a and b"), "{stray:?}");
}

/// A JobSet of two roles with these annotations and numbers of pods.
fn job_set(first: (&str, u32), second: (&str, u32)) -> String {
    let role = |name: &str, (annotations, pods): (&str, u32)| {
        format!(
            "{{name: {name}, template: {{spec: {{parallelism: {pods}, completions: {pods}, template: {{metadata: \
             {{annotations: {{{annotations}}}}}, spec: {{restartPolicy: Never, containers: [{{name: main}}]}}}}}}}}}}"
        )
    };
    let roles = format!("[{}, {}]", role("driver", first), role("worker", second));
    object("jobset.x-k8s.io/v1alpha2", "JobSet", "j", &format!("{{replicatedJobs: {roles}}}"))
}

#[test]
fn a_podset_group_is_of_two_pod_sets_that_wish_alike() {
    let racks =
        "kueue.x-k8s.io/podset-required-topology: a/rack, kueue.x-k8s.io/podset-group-name: g";
    let blocks =
        "kueue.x-k8s.io/podset-required-topology: a/block, kueue.x-k8s.io/podset-group-name: g";
    let of = |first, second| {
        let world = World::of(&job_set(first, second));
        told(&world).into_iter().filter(|told| told.contains(TOGETHER)).collect::<Vec<_>>()
    };
    assert_eq!(of((racks, 1), (racks, 3)), Vec::<String>::new());
    for (first, second, word) in [
        ((racks, 1), ("", 3), "that 1 pod set has, for it takes exactly two"),
        ((racks, 2), (racks, 3), "of which neither is a single pod"),
        ((racks, 1), (blocks, 3), "that places its two pod sets differently"),
    ] {
        let told = of(first, second);
        assert!(told.len() == 1 && told[0].contains(word), "{word}: {told:?}");
    }
}

#[test]
fn annotations_that_kueue_refuses_are_told_of_gangs_and_others() {
    let job = |annotations: &str| {
        let template = format!(
            "{{metadata: {{annotations: {{{annotations}}}}}, spec: {{restartPolicy: Never, containers: [{{name: \
             main}}]}}}}"
        );
        let spec = format!(
            "{{parallelism: 8, completions: 8, completionMode: Indexed, template: {template}}}"
        );
        told(&World::of(&object("batch/v1", "Job", "j", &spec))).join("\n")
    };
    let layers = |sizes: &str| format!("{LAYERS}: '[{sizes}]'");
    let (four, three) = ("{\"topology\":\"a\",\"size\":4}", "{\"topology\":\"b\",\"size\":3}");
    let two = "{\"topology\":\"b\",\"size\":2}";
    for (annotations, word) in [
        (
            "kueue.x-k8s.io/podset-unconstrained-topology: maybe".to_owned(),
            "neither true nor false",
        ),
        ("kueue.x-k8s.io/podset-slice-size: '2'".to_owned(), "A size of slices without"),
        ("kueue.x-k8s.io/podset-required-topology: a b".to_owned(), "is no key of a label"),
        ("kueue.x-k8s.io/podset-required-topology: ''".to_owned(), "is no key of a label"),
        (
            "kueue.x-k8s.io/podset-slice-required-topology: a, kueue.x-k8s.io/podset-slice-size: ' 2'"
                .to_owned(),
            "is no size of a slice",
        ),
        ("kueue.x-k8s.io/pod-index-offset: '-1'".to_owned(), "no whole number of at least 0"),
        (
            layers(&format!("{four},{three}")),
            "slices of 4 pods do not come out even in slices of 3",
        ),
        (layers(&format!("{four},{four}")), "name the level a twice"),
        (
            layers(four) + ", kueue.x-k8s.io/podset-slice-size: '4'",
            "beside the annotation kueue.x-k8s.io/podset-slice-size",
        ),
    ] {
        let told = job(&annotations);
        assert!(told.contains(word), "{word}: {told}");
        assert!(!told.contains("16 pods"), "{told}");
    }
    for annotations in [
        "kueue.x-k8s.io/podset-unconstrained-topology: 'true', kueue.x-k8s.io/pod-index-offset: '1'"
            .to_owned(),
        layers(&format!("{four},{two}")),
    ] {
        let told = job(&annotations);
        assert!(!told.contains("Kueue refuses"), "{told}");
    }
}

#[test]
fn groups_of_one_name_of_two_controllers_are_told_of() {
    let set = "{replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: {metadata: {annotations: \
               {kueue.x-k8s.io/podset-required-topology: a/rack}}, spec: {containers: [{name: main}]}}}}";
    let set = object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", set);
    let of = |name: &str| {
        let marks = format!(
            ", labels: {{kueue.x-k8s.io/pod-group-name: {name}}}, annotations: \
             {{kueue.x-k8s.io/pod-group-total-count: '1'}}"
        );
        told(&World::of(&(set.clone() + &pod("p", &marks, "")))).join("\n")
    };
    assert!(of("l-0").contains("are called l-0 in this namespace"), "{}", of("l-0"));
    assert!(!of("m-0").contains("in this namespace"), "{}", of("m-0"));
}

#[test]
fn an_object_that_is_not_there_is_told_from_a_kind_of_which_there_is_none() {
    let world = World::of(&member());
    let group = world.group("podgroup", "g").expect("a gang");
    let admits = group.roles[0].admits.as_ref().expect("it waits");
    assert_eq!(&*admits.fault.subject, "PodGroup g is not in the input");
    assert!(told(&world)[0].contains("is not in the input, nor is any other of its kind."));
    let other = "{schedulingPolicy: {basic: {}}}";
    let world = World::of(&(member() + &object(UPSTREAM, "PodGroup", "h", other)));
    assert!(told(&world)[0].contains("is not in the input. The pods"), "{:?}", told(&world));
    let world = World::of(&(under("top") + &member()));
    assert!(told(&world)[0].contains("CompositePodGroup top"), "{:?}", told(&world));
}
