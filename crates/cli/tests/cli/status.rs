//! The fleet, two plans side by side, and dumps without names.

use crate::common::{NODE, POD, Scratch, run, run_with};

#[test]
fn the_fleet_is_shown_with_its_pieces_holders_and_those_who_wait() {
    run(&["status", "-f", "examples"]).code(0).says(&[
        "7 nodes: 7 ready",
        "NVIDIA H100 80GB HBM3 (gpu.nvidia.com)",
        "8: 100 % (100 %)",
        "links of 3 unknown",
        "pod/pretrain",
        "pod/finetune",
        "would start now",
    ]);
    let status = run(&["status", "-f", "examples", "-o", "json"]).code(0).json();
    assert_eq!(status["apiVersion"], "phalanx.dev/status/v1");
    let stock = &status["devices"][2];
    assert_eq!(
        (&stock["total"], &stock["used"], &stock["free"]),
        (&16.into(), &10.into(), &6.into())
    );
}

#[test]
fn a_fleet_without_devices_says_so_and_misuse_is_a_document() {
    run_with(&["status", "-f", "-"], NODE).code(0).says(&["1 node: 1 ready", "No device was read"]);
    for command in ["status", "diff"] {
        let document = run(&[command, "-o", "json", "--nonsense"]).code(2).json();
        assert_eq!(document["apiVersion"], format!("phalanx.dev/{command}/v1"));
        assert_eq!(document["findings"][0]["severity"], "error");
    }
}

#[test]
fn plans_are_compared_and_the_exit_code_is_that_of_diff() {
    let scratch = Scratch::new();
    let plan = |name: &str, more: &[&str]| {
        let args = [&["plan", "-f", "examples"], more].concat();
        scratch.file(name, &run(&args).out)
    };
    let now = plan("now.json", &["-o", "json"]);
    let then = plan("then.yaml", &["-o", "yaml", "--if", "+2 nodes like hgx-1"]);
    run(&["diff", &now, &now]).code(0).says(&["The plans are the same: 10 pods."]);
    run(&["diff", &now, &then]).code(1).says(&[
        "starts  research/finetune",
        "hgx-1-like-1 gpu-0",
        "1 start now; 9 the same",
    ]);
    let json = run(&["diff", &then, &now, "-o", "json"]).code(1).json();
    assert_eq!(json["changes"][0]["change"], "stops");
    assert_eq!(json["changes"][0]["after"]["node"], serde_json::Value::Null);
    let lint = scratch.file("lint.json", &run(&["lint", "-f", "examples", "-o", "json"]).out);
    run(&["diff", &now, &lint]).code(2).complains(&["lint.json is no plan"]);
    run(&["diff", &now, "no/such.json"]).code(2).complains(&["no/such.json can't be read"]);
}

#[test]
fn a_masked_dump_shows_no_name_and_is_planned_alike() {
    let scratch = Scratch::new();
    let names = scratch.file("names.json", "");
    let masked = run(&["mask", "-f", "examples", "--names", &names]).code(0);
    for hidden in ["hgx", "research", "pretrain", "serving", "rack-", "image", "command"] {
        assert!(!masked.out.contains(hidden), "{hidden}");
    }
    for kept in ["NVIDIA H100 80GB HBM3", "nvidia.com/gpu", "1980Gi", "device.driver =="] {
        assert!(masked.out.contains(kept), "{kept}");
    }
    let key: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&Scratch::read(&names)).unwrap();
    let plan = ["plan", "-f", "-", "-o", "json"];
    let hidden = run_with(&plan, &masked.out).code(1).json();
    let plain = run(&["plan", "-f", "examples", "-o", "json"]).code(1).json();
    let word = |value: &serde_json::Value| {
        let text = value.as_str().unwrap_or_default();
        let parts = text.split_inclusive(|c: char| !c.is_alphabetic());
        let back = parts.map(|part| {
            let word = part.trim_end_matches(|c: char| !c.is_alphabetic());
            key.get(word).map_or(part.to_owned(), |name| part.replace(word, name))
        });
        back.collect::<String>()
    };
    let of = |plan: &serde_json::Value, at: usize, field: &str| plan["pods"][at][field].clone();
    for at in 0..plain["pods"].as_array().unwrap().len() {
        for field in ["namespace", "name", "node"] {
            let plain = of(&plain, at, field).as_str().unwrap_or_default().to_owned();
            assert_eq!(word(&of(&hidden, at, field)), plain);
        }
        assert_eq!(of(&hidden, at, "verdict"), of(&plain, at, "verdict"));
        assert_eq!(of(&hidden, at, "choice"), of(&plain, at, "choice"));
    }
}

#[test]
fn a_masked_list_is_one_object_and_says_what_is_left_out() {
    let secret =
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: cGhhbGFueA==}\n";
    let pod =
        POD.replace("name: main", "name: main, image: registry/x, env: [{name: A, value: hush}]");
    let text = format!("{NODE}---\n{pod}{secret}");
    let ran = run_with(&["mask", "-f", "-", "-o", "json"], &text).code(0);
    let list = ran.json();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&"List".into(), 2));
    assert!(
        !ran.out.contains("hush") && !ran.out.contains("registry") && !ran.out.contains("cGhh")
    );
    ran.complains(&["2 objects written", "1 object of a kind that is not read is left out"]);
    let broken = text.replace("cpu: '8'", "cpu: lots");
    run_with(&["mask", "-f", "-"], &broken).code(1).complains(&["lots", "1 object written"]);
}
