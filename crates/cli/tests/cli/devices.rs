//! `phalanx devices` over the examples.

use crate::common::{run, run_with};

const MEMORY: &str = r#"device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0"#;

#[test]
fn devices_are_rows_and_what_differs_is_a_column() {
    let ran = run(&["devices", "-f", "examples"]).code(0);
    let head = ran.out.lines().next().expect("a heading").to_owned();
    for column in ["NODE", "DEVICE", "memory", "productName", "nvlinkDomain", "HELD BY"] {
        assert!(head.contains(column), "{column} in {head}");
    }
    // The same everywhere, and different everywhere: said below the table.
    assert!(!head.contains("driverVersion") && !head.contains("uuid"), "{head}");
    let ran =
        ran.says(&["the same on every device", "580.126.9", "different on every device: uuid"]);
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("hgx-1")).count(), 8);
    assert_eq!(
        run(&["devices", "-f", "examples", "--wide"]).code(0).out.matches("GPU-").count(),
        26
    );
}

#[test]
fn an_expression_keeps_rows_and_shows_the_value_that_failed() {
    let ran = run(&["devices", "-f", "examples", "--where", MEMORY]).code(0);
    let line = |start: &str, device: &str| {
        let found = ran.out.lines().find(|l| l.starts_with(start) && l.contains(device));
        found.unwrap_or_else(|| panic!("{start} {device}\n{}", ran.out)).to_owned()
    };
    assert!(line("lab-1", "gpu-3").contains("memory is"), "{}", line("lab-1", "gpu-3"));
    assert!(line("lab-1", "gpu-3").contains("24Gi"));
    assert!(!line("lab-1", "gpu-0").contains("memory is"));
    ran.says(&["23 of 26 devices kept"]);
}

#[test]
fn a_class_is_a_test_too() {
    let ran = run(&["devices", "-f", "examples", "--class", "gpu.nvidia.com", "-o", "json"]);
    let document = ran.code(0).json();
    assert_eq!(document["summary"]["kept"], 26);
    run(&["devices", "-f", "examples", "--class", "nope"]).code(2).complains(&["gpu.nvidia.com"]);
}

#[test]
fn an_expression_that_does_not_compile_has_a_caret() {
    let ran = run(&[
        "devices",
        "-f",
        "examples",
        "--where",
        "device.capacity[\"gpu.nvidia.com\"].memory >= 40",
    ]);
    ran.code(2).complains(&["--where", "^", "quantity("]);
    let ran = run(&["devices", "-f", "examples", "--where", "device.drivr == 'x'"]);
    ran.code(2).complains(&["^", "drivr"]);
}

#[test]
fn an_expression_that_fails_on_some_devices_says_so() {
    let expression = r#"device.attributes["gpu.nvidia.com"].nvlinkDomain == "a""#;
    let ran = run(&["devices", "-f", "examples", "--where", expression]);
    let ran = ran.code(0).says(&["2 of 26 devices kept", "no such key"]);
    ran.complains(&["^", "no such key: nvlinkDomain"]);
}

#[test]
fn devices_as_data_name_everything_in_full() {
    let document =
        run(&["devices", "-f", "examples", "--where", MEMORY, "-o", "json"]).code(0).json();
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 26);
    let small = devices.iter().find(|d| d["node"] == "lab-1" && d["device"] == "gpu-3").unwrap();
    assert_eq!(small["kept"], false);
    assert_eq!(small["attributes"]["gpu.nvidia.com/nvlinkDomain"]["string"], "b");
    assert_eq!(small["capacity"]["gpu.nvidia.com/memory"], "24Gi");
    assert!(small["failed"][0]["values"]["memory"].as_str().unwrap().contains("24Gi"));
    let held = devices.iter().find(|d| d["node"] == "hgx-1" && d["device"] == "gpu-0").unwrap();
    assert_eq!(held["claims"][0], "research/eval-nightly-gpus-b7d4w");
}

const SLICE: &str = "\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: g.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {kind: {string: small}}}, {name: gpu-1}]
";

#[test]
fn an_expression_without_an_answer_for_any_device_is_wrong() {
    let lost = r#"device.attributes["g.example.com"].nothing == 1"#;
    let ran = run_with(&["devices", "-f", "-", "--where", lost], SLICE).code(1);
    ran.says(&["0 of 2 devices kept"]).complains(&["no such key: nothing"]);
    // One that has an answer for some is not, nor is one that is false for all.
    let some = r#"device.attributes["g.example.com"].kind == "none""#;
    run_with(&["devices", "-f", "-", "--where", some], SLICE).code(0).says(&["no such key"]);
    run_with(&["devices", "-f", "-", "--where", "false"], SLICE).code(0).says(&["false for every"]);
}

#[test]
fn a_macro_over_a_text_is_told_in_plain_words() {
    let over = r#"device.attributes["g.example.com"].kind.exists(x, x == "a")"#;
    let ran = run_with(&["devices", "-f", "-", "--where", over], SLICE);
    ran.says(&["a macro goes over a list or a map, and this is a string"]);
}

#[test]
fn devices_of_a_pool_that_is_not_whole_are_not_kept() {
    let lacking = SLICE.replace("resourceSliceCount: 1", "resourceSliceCount: 2");
    let ran = run_with(&["devices", "-f", "-", "--where", "true"], &lacking).code(0);
    ran.says(&["it passes, and is not given out: pool n1 is incomplete", "0 of 2 devices kept"]);
    run_with(&["devices", "-f", "-"], &lacking).says(&["NOT GIVEN OUT", "pool n1 is incomplete"]);
    let json = run_with(&["devices", "-f", "-", "--where", "true", "-o", "json"], &lacking).json();
    assert_eq!(json["devices"][0]["kept"], false);
    assert!(json["devices"][0]["trouble"].as_str().unwrap().contains("1 of 2 slices"));
    let whole = run_with(&["devices", "-f", "-", "--where", "true"], SLICE).code(0);
    assert!(!whole.out.contains("given out"), "{}", whole.out);
}
