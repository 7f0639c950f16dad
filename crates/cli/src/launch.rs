//! The order of a group's ranks as launchers take it: a hostfile, a rank file, or the variables of each
//! process. A pod has as many processes as devices, and one where it has none.

use std::fmt::Write as _;

use phalanx_cluster::view::{Document, GroupView, RankView, VerdictWord};

/// How the order is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// `HOST slots=N`, as MPI's hostfile has it.
    Hostfile,
    /// `rank N=HOST slot=M`, as Open MPI's rank file has it.
    Rankfile,
    /// `RANK`, `WORLD_SIZE`, `NODE_RANK` and `LOCAL_RANK` of each process.
    Env,
}

/// The groups that start whole and are placed, in the order of the document.
pub(crate) fn render(document: &Document, launch: Launch) -> String {
    let mut out = String::new();
    let groups: Vec<&GroupView> = document.groups.iter().filter(|g| !g.ranks.is_empty()).collect();
    if groups.is_empty() {
        return "# No group that starts whole is placed.\n".to_owned();
    }
    for group in groups {
        let GroupView { kind, name, namespace, verdict, .. } = group;
        // Writing to a string can't fail.
        if *verdict == VerdictWord::Placed {
            let _ = writeln!(out, "# {kind}/{name} in {namespace}");
            one(&mut out, group, launch);
        } else {
            let _ = writeln!(
                out,
                "# {kind}/{name} in {namespace} does not start whole: `phalanx why group/{name}` \
                 says why"
            );
        }
    }
    out
}

fn one(out: &mut String, group: &GroupView, launch: Launch) {
    let processes = |rank: &RankView| rank.devices.max(1);
    let world: u32 = group.ranks.iter().map(processes).sum();
    let mut first = 0;
    for (node_rank, rank) in group.ranks.iter().enumerate() {
        let (pod, node, local) = (&rank.pod, &rank.node, processes(rank));
        let _ = match launch {
            Launch::Hostfile => writeln!(out, "{pod} slots={local} # on {node}"),
            Launch::Rankfile => (0..local)
                .try_for_each(|slot| writeln!(out, "rank {}={pod} slot={slot}", first + slot)),
            Launch::Env => (0..local).try_for_each(|slot| {
                writeln!(
                    out,
                    "RANK={} WORLD_SIZE={world} NODE_RANK={node_rank} LOCAL_RANK={slot} \
                     LOCAL_WORLD_SIZE={local} # {pod} on {node}",
                    first + slot
                )
            }),
        };
        first += local;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_rank_of_its_own() {
        let rank = |rank, pod: &str, devices| RankView {
            rank,
            pod: pod.to_owned(),
            node: "n1".to_owned(),
            devices,
        };
        let group = GroupView {
            namespace: "ml".to_owned(),
            name: "train".to_owned(),
            kind: "job".to_owned(),
            verdict: VerdictWord::Placed,
            wanted: 2,
            placed: 2,
            short: 0,
            missing_subgroups: Vec::new(),
            reasons: Vec::new(),
            cures: Vec::new(),
            notes: Vec::new(),
            ranks: vec![rank(0, "a", 2), rank(1, "b", 0)],
            places: Vec::new(),
        };
        let text = |launch| {
            let mut out = String::new();
            one(&mut out, &group, launch);
            out
        };
        assert_eq!(text(Launch::Hostfile), "a slots=2 # on n1\nb slots=1 # on n1\n");
        let ranks = "rank 0=a slot=0\nrank 1=a slot=1\nrank 2=b slot=0\n";
        assert_eq!(text(Launch::Rankfile), ranks);
        let last = text(Launch::Env);
        let last = last.lines().last().unwrap_or_default();
        assert!(last.starts_with("RANK=2 WORLD_SIZE=3 NODE_RANK=1 LOCAL_RANK=0 "), "{last}");
    }
}
