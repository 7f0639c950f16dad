//! Workloads of every kind: the names, indexes and ranks of their pods, and that what was expanded and
//! then exists leaves nothing to plan.

use phalanx_engine::{GroupKey, Name, Scoped};
use phalanx_objects::workload::WorkloadKind;

use super::World;
use crate::lower::GroupInfo;

fn key(kind: WorkloadKind, name: &str) -> GroupKey {
    let object = Scoped { namespace: Name::new("default"), name: Name::new(name) };
    GroupKey { object, kind: Name::new(kind.word()) }
}

/// The pods that a workload is to make: name, role, index, rank.
fn planned(world: &World, key: &GroupKey) -> Vec<String> {
    let infos = groups_of(world, key);
    let pods = infos.iter().flat_map(|info| &info.roles).flat_map(|role| &role.pods);
    let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    pods.map(|pod| {
        let (name, role) = (&pod.key.0.name, &pod.role_name);
        format!("{name} {role} {} {}", number(pod.index), number(pod.rank)).replace("  ", " ")
    })
    .collect()
}

/// What is planned of a workload: its own group, and those of the gangs that it makes.
fn groups_of(world: &World, key: &GroupKey) -> Vec<GroupInfo> {
    let gangs = world.lowering.shown.gangs.keys().filter(|gang| *gang != key);
    let gangs = gangs.filter_map(|gang| world.lowering.group(gang));
    let own = world.lowering.group(key).into_iter();
    own.chain(gangs.filter(|info| info.above.contains(key))).collect()
}

const TEMPLATE: &str = "{spec: {containers: [{name: pytorch}]}}";

#[test]
fn names_indexes_and_ranks_of_the_pods_of_kubeflow() {
    let of = |kind: &str, field: &str, roles: &[(&str, u32)], container: &str| {
        let template = TEMPLATE.replace("pytorch", container);
        let roles: Vec<String> = roles
            .iter()
            .map(|(role, n)| format!("{role}: {{replicas: {n}, template: {template}}}"))
            .collect();
        World::of(&format!(
            "{{apiVersion: kubeflow.org/v1, kind: {kind}, metadata: {{name: j}}, spec: {{{field}: \
             {{{}}}}}}}",
            roles.join(", ")
        ))
    };
    let both = [("Master", 1), ("Worker", 2)];
    let ranked = ["j-master-0 master 0 0", "j-worker-0 worker 0 1", "j-worker-1 worker 1 2"];
    let world = of("PyTorchJob", "pytorchReplicaSpecs", &both, "pytorch");
    assert_eq!(planned(&world, &key(WorkloadKind::PyTorchJob, "j")), ranked);
    let world = of("XGBoostJob", "xgbReplicaSpecs", &both, "xgboost");
    assert_eq!(planned(&world, &key(WorkloadKind::XgBoostJob, "j")), ranked);
    let world = of("PaddleJob", "paddleReplicaSpecs", &both, "paddle");
    assert_eq!(planned(&world, &key(WorkloadKind::PaddleJob, "j")), ranked);
    let world = of("PyTorchJob", "pytorchReplicaSpecs", &[("worker", 2)], "pytorch");
    assert_eq!(
        planned(&world, &key(WorkloadKind::PyTorchJob, "j")),
        ["j-worker-0 worker 0 0", "j-worker-1 worker 1 1"]
    );
    let world =
        of("TFJob", "tfReplicaSpecs", &[("Worker", 1), ("PS", 1), ("Chief", 1)], "tensorflow");
    assert_eq!(
        planned(&world, &key(WorkloadKind::TfJob, "j")),
        ["j-chief-0 chief 0 0", "j-ps-0 ps 0 0", "j-worker-0 worker 0 0"]
    );
    let world = of("JAXJob", "jaxReplicaSpecs", &[("Worker", 2)], "jax");
    assert_eq!(
        planned(&world, &key(WorkloadKind::JaxJob, "j")),
        ["j-worker-0 worker 0 0", "j-worker-1 worker 1 1"]
    );
}

#[test]
fn the_launcher_of_mpi_has_a_rank_where_it_works() {
    let of = |works: bool| {
        World::of(&format!(
            "
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: j}}
spec:
  runLauncherAsWorker: {works}
  mpiReplicaSpecs:
    Launcher: {{template: {TEMPLATE}}}
    Worker: {{replicas: 2, template: {TEMPLATE}}}
"
        ))
    };
    let key = key(WorkloadKind::MpiJob, "j");
    assert_eq!(
        planned(&of(false), &key),
        ["j-launcher-0 launcher 0 -", "j-worker-0 worker 0 0", "j-worker-1 worker 1 1"]
    );
    assert_eq!(
        planned(&of(true), &key),
        ["j-launcher-0 launcher 0 0", "j-worker-0 worker 0 1", "j-worker-1 worker 1 2"]
    );
}

#[test]
fn names_indexes_and_ranks_of_groups_of_jobs_and_workers() {
    let jobs = World::of(
        "
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s}
spec:
  replicatedJobs:
  - {name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {}}}}
",
    );
    assert_eq!(
        planned(&jobs, &key(WorkloadKind::JobSet, "s")),
        ["s-w-0-0 w 0 0", "s-w-0-1 w 1 1", "s-w-1-0 w 2 2", "s-w-1-1 w 3 3"]
    );
    let lws = World::of(
        "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: l}
spec: {replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: {}}}
",
    );
    assert_eq!(
        planned(&lws, &key(WorkloadKind::LeaderWorkerSet, "l")),
        [
            "l-0 leader 0 0",
            "l-1 leader 1 0",
            "l-0-1 worker 0 1",
            "l-0-2 worker 1 2",
            "l-1-1 worker 2 1",
            "l-1-2 worker 3 2"
        ]
    );
    let sts = World::of(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {replicas: 2, ordinals: {start: 5}, template: {}}
",
    );
    let ordinals = ["db-5 0 5", "db-6 1 6"];
    assert_eq!(planned(&sts, &key(WorkloadKind::StatefulSet, "db")), ordinals);
}

#[test]
fn a_trainjob_takes_the_number_of_its_nodes_from_where_it_stands() {
    let nodes = |own: &str, policy: &str, role: &str, step: &str| {
        let world = World::of(&format!(
            "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {{name: r}}
spec:
  mlPolicy: {policy}
  template:
    spec:
      replicatedJobs:
      - {{name: launcher, template: {{metadata: {{labels: {{{step}}}}}, spec: {{completions: 1, template: {{}}}}}}}}
      - {{name: {role}, template: {{spec: {{parallelism: 3, completions: 3, template: {{}}}}}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: t}}
spec: {{runtimeRef: {{name: r, kind: TrainingRuntime}}, trainer: {own}}}
"
        ));
        let planned = planned(&world, &key(WorkloadKind::TrainJob, "t"));
        let of = |role: &str| planned.iter().filter(|pod| pod.contains(role)).count();
        (of("launcher"), of("node"))
    };
    let trainer = "trainer.kubeflow.org/trainjob-ancestor-step: trainer";
    let mpi = "{numNodes: 2, mpi: {}}";
    assert_eq!(nodes("{numNodes: 4}", "{numNodes: 2}", "node", trainer), (4, 3));
    assert_eq!(nodes("{}", "{numNodes: 2}", "node", trainer), (2, 3));
    assert_eq!(nodes("{numNodes: 4}", mpi, "node", trainer), (1, 4));
    // What the runtime says goes to the launcher, which is marked as the trainer.
    assert_eq!(nodes("{}", mpi, "node", trainer), (2, 3));
    let as_node = "{mpi: {runLauncherAsNode: true}}";
    assert_eq!(nodes("{numNodes: 4}", as_node, "node", trainer), (1, 3));
    assert_eq!(nodes("{numNodes: 1}", as_node, "node", trainer), (1, 1));
}

#[test]
fn what_was_expanded_and_exists_leaves_nothing_to_plan() {
    for (kind, manifest, labels) in ALL {
        let mut world = World::of(&format!("{NODES}{manifest}"));
        let key = key(*kind, "x");
        let infos = groups_of(&world, &key);
        let pods: Vec<_> = infos.iter().flat_map(|i| &i.roles).flat_map(|r| &r.pods).collect();
        assert!(!pods.is_empty(), "{kind:?} makes pods");
        let mut text = String::new();
        for pod in &pods {
            let (name, role) = (&pod.key.0.name, &pod.role_name);
            let index = pod.index.unwrap_or(0);
            let labels = labels
                .replace("ROLE", role)
                .replace("INDEX", &index.to_string())
                .replace("PART", &(index / 2).to_string())
                .replace("INNER", &(index % 2).to_string())
                .replace("NEXT", &(index % 2 + 1).to_string());
            let (owner, meta) = labels.split_once(" | ").expect("an owner and labels");
            let node = name.strip_prefix("x-").filter(|node| node.starts_with("node"));
            text += &format!(
                "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels: {{{meta}}}\n  \
                 ownerReferences: [{{{owner}, controller: true}}]\nspec: {{nodeName: {}}}\n",
                node.unwrap_or("node-1")
            );
        }
        world.add(&text);
        assert_eq!(planned(&world, &key), Vec::<String>::new(), "{kind:?}");
        for pod in &pods {
            let alone = world.group("pod", &pod.key.0.name);
            let parent = alone.and_then(|group| group.parent.clone());
            let gang = world.lowering.shown.gang_of.contains_key(&pod.key);
            assert!(gang || parent.as_ref() == Some(&key), "{kind:?}: {parent:?}");
        }
    }
}

const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {allocatable: {pods: 10}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-2}, status: {allocatable: {pods: 10}}}
---
";

/// Of each kind a manifest, and what its pods say of themselves: owner and labels.
const ALL: &[(WorkloadKind, &str, &str)] = &[
    (
        WorkloadKind::Job,
        "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {completionMode: Indexed, parallelism: 2, completions: 2, template: {}}}\n",
        "kind: Job, apiVersion: batch/v1, name: x | batch.kubernetes.io/job-completion-index: 'INDEX'",
    ),
    (
        WorkloadKind::Deployment,
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 2, template: {}}}\n",
        "kind: ReplicaSet, apiVersion: apps/v1, name: x-5d | pod-template-hash: 5d",
    ),
    (
        WorkloadKind::ReplicaSet,
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x}, spec: {replicas: 2, template: {}}}\n",
        "kind: ReplicaSet, apiVersion: apps/v1, name: x | a: b",
    ),
    (
        WorkloadKind::StatefulSet,
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 2, template: {}}}\n",
        "kind: StatefulSet, apiVersion: apps/v1, name: x | apps.kubernetes.io/pod-index: 'INDEX'",
    ),
    (
        WorkloadKind::DaemonSet,
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {template: {}}}\n",
        "kind: DaemonSet, apiVersion: apps/v1, name: x | a: b",
    ),
    (
        WorkloadKind::JobSet,
        "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: x}, spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {}}}}]}}\n",
        "kind: Job, apiVersion: batch/v1, name: x-w-PART | jobset.sigs.k8s.io/jobset-name: x, jobset.sigs.k8s.io/replicatedjob-name: ROLE, jobset.sigs.k8s.io/job-index: 'PART', batch.kubernetes.io/job-completion-index: 'INNER'",
    ),
    (
        WorkloadKind::MpiJob,
        "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: x}, spec: {mpiReplicaSpecs: {Launcher: {template: {}}, Worker: {replicas: 2, template: {}}}}}\n",
        "kind: MPIJob, apiVersion: kubeflow.org/v2beta1, name: x | training.kubeflow.org/job-role: ROLE, training.kubeflow.org/replica-index: 'INDEX'",
    ),
    (
        WorkloadKind::PyTorchJob,
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: x}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch}]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}}}}\n",
        "kind: PyTorchJob, apiVersion: kubeflow.org/v1, name: x | training.kubeflow.org/replica-type: ROLE, training.kubeflow.org/replica-index: 'INDEX'",
    ),
    (
        WorkloadKind::RayCluster,
        "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: x}, spec: {headGroupSpec: {template: {}}, workerGroupSpecs: [{groupName: g, replicas: 2, numOfHosts: 2, template: {}}]}}\n",
        "kind: RayCluster, apiVersion: ray.io/v1, name: x | ray.io/group: ROLE, ray.io/node-type: ROLE, ray.io/worker-group-replica-index: 'PART', ray.io/replica-host-index: 'INNER'",
    ),
    (
        WorkloadKind::VolcanoJob,
        "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: x}, spec: {tasks: [{name: a, replicas: 1, template: {}}, {name: b, replicas: 2, template: {}}]}}\n",
        "kind: Job, apiVersion: batch.volcano.sh/v1alpha1, name: x | volcano.sh/task-spec: ROLE, volcano.sh/task-index: 'INDEX'",
    ),
    (
        WorkloadKind::PodCliqueSet,
        "{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {name: x}, spec: {replicas: 2, template: {cliques: [{name: c, spec: {replicas: 2, podSpec: {}}}]}}}\n",
        "kind: PodClique, apiVersion: grove.io/v1alpha1, name: x-ROLE | app.kubernetes.io/part-of: x, grove.io/podclique: x-ROLE, grove.io/podclique-pod-index: 'INDEX'",
    ),
];

#[test]
fn an_older_version_is_named_and_owners_are_of_any() {
    assert_eq!(WorkloadKind::of_owner("ray.io/v2", "RayCluster"), Some(WorkloadKind::RayCluster));
    assert_eq!(
        WorkloadKind::of_owner("batch.volcano.sh/v9", "Job"),
        Some(WorkloadKind::VolcanoJob)
    );
    assert_eq!(WorkloadKind::of_owner("", "Job"), Some(WorkloadKind::Job));
    assert_eq!(WorkloadKind::of_owner("example.com/v1", "Job"), None);
    let mut lowering = World::of("").lowering;
    let source = crate::finding::Source { file: "f".into(), line: 1, ordinal: 1 };
    lowering.skip("jobset.x-k8s.io/v1beta7", "JobSet", source);
    let said = lowering.findings();
    assert!(said[0].message.contains("are read in jobset.x-k8s.io/v1alpha2"), "{said:?}");
}

#[test]
fn absurd_counts_take_no_time_and_say_so() {
    let many = "2147483647";
    let texts = [
        format!(
            "{{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {{name: x}}, spec: {{replicas: {many}, template: {{cliques: [], podCliqueScalingGroups: [{{name: g, cliqueNames: [c], replicas: {many}}}]}}}}}}"
        ),
        format!(
            "{{apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {{name: x, uid: u}}, spec: {{replicas: {many}, template: {{cliques: [{{name: c, spec: {{replicas: {many}, podSpec: {{}}}}}}]}}}}}}"
        ),
        format!(
            "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{name: x}}, spec: {{replicatedJobs: [{{name: w, replicas: {many}, template: {{spec: {{parallelism: {many}, completions: {many}, template: {{}}}}}}}}]}}}}"
        ),
        format!(
            "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{name: x, uid: u}}, spec: {{replicatedJobs: [{{name: w, replicas: {many}, template: {{spec: {{parallelism: 0, completions: {many}, template: {{}}}}}}}}]}}}}"
        ),
        format!(
            "{{apiVersion: ray.io/v1, kind: RayCluster, metadata: {{name: x}}, spec: {{workerGroupSpecs: [{{groupName: g, replicas: {many}, numOfHosts: {many}}}]}}}}"
        ),
        format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {{name: x, uid: u}}, spec: {{replicas: {many}, leaderWorkerTemplate: {{size: {many}, workerTemplate: {{}}}}}}}}"
        ),
        format!(
            "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: x, uid: u}}, spec: {{tasks: [{{replicas: {many}, template: {{}}}}, {{replicas: {many}, template: {{}}}}]}}}}"
        ),
        format!(
            "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: x}}, spec: {{replicas: {many}, ordinals: {{start: {many}}}, template: {{}}}}}}"
        ),
        format!(
            "{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {{name: r}}, spec: {{template: {{spec: {{replicatedJobs: [{{name: node, replicas: {many}, template: {{spec: {{template: {{}}}}}}}}]}}}}}}}}\n---\n{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {{name: x}}, spec: {{runtimeRef: {{name: r}}, trainer: {{numNodes: {many}}}}}}}"
        ),
    ];
    for text in texts {
        let world = World::of(&text);
        let pods: usize = WorkloadKind::ALL
            .iter()
            .filter_map(|kind| world.lowering.group(&key(*kind, "x")))
            .flat_map(|info| info.roles)
            .map(|role| role.pods.len())
            .sum();
        assert!(pods <= 100_000, "{text}: {pods}");
        assert!(
            pods == 0 || world.says(&["Phalanx plans the first"]) || world.says(&["roles"]),
            "{text}: {:?}",
            world.said()
        );
    }
}

#[test]
fn owners_in_a_ring_are_followed_once_round() {
    let job = |name: &str, owner: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  ownerReferences: \
             [{{apiVersion: batch/v1, kind: CronJob, name: {owner}, controller: true}}]\nspec: \
             {{template: {{}}}}\n"
        )
    };
    let cron = |name: &str, owner: &str| {
        job(name, owner)
            .replace("kind: Job\n", "kind: CronJob\n")
            .replace("spec: {template: {}}", "spec: {}")
    };
    let world = World::of(&(cron("a", "b") + &cron("b", "a") + &job("j", "a")));
    let info = world.lowering.group(&key(WorkloadKind::Job, "j")).expect("the job");
    let above: Vec<String> = info.above.iter().map(ToString::to_string).collect();
    assert_eq!(above, ["cronjob/a", "cronjob/b"]);
}

#[test]
fn a_runtime_may_come_later_and_go_again() {
    let job = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {runtimeRef: {name: r}}}";
    let runtime = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: r}, spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {completions: 1, template: {}}}}]}}}}";
    let key = key(WorkloadKind::TrainJob, "t");
    let mut world = World::of(job);
    assert_eq!(planned(&world, &key), Vec::<String>::new());
    assert!(world.says(&["ClusterTrainingRuntime r is not in the input"]));
    world.add(runtime);
    assert_eq!(planned(&world, &key), ["t-node-0-0 node 0 0"]);
    assert!(!world.says(&["is not in the input"]));
    let gone = phalanx_objects::ObjectRef {
        kind: phalanx_objects::Kind::Workload(WorkloadKind::ClusterTrainingRuntime),
        namespace: String::new(),
        name: "r".to_owned(),
    };
    world.lowering.absorb(super::ObjectEvent::Deleted(gone.into()));
    world.settle();
    assert_eq!(planned(&world, &key), Vec::<String>::new());
    assert!(world.says(&["ClusterTrainingRuntime r is not in the input"]));
}
