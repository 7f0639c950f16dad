//! `phalanx devices`: what there is, and what a class or an expression keeps of it.

pub(crate) mod inventory;
mod judge;
mod table;
mod view;

use phalanx_cluster::Compat;
use phalanx_cluster::world::World;

use crate::args::{DevicesArgs, Output};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::input::{self, Input};

use judge::{Judge, Judgement};
use view::DevicesDocument;

/// Answers the command.
pub(crate) fn run(args: &DevicesArgs) -> Result<Answer, Failure> {
    let Input { world, findings, .. } = input::read(&args.input, input::Asked::default())?;
    let judge = judge(args, &world)?;
    let rows: Vec<_> = inventory::rows(&world)
        .into_iter()
        .map(|row| {
            let judgement = (!judge.is_empty()).then(|| judge.judge(&row));
            (row, judgement)
        })
        .collect();
    // One picture is enough: the expression is the same for all.
    let picture = rows.iter().find_map(|(_, judgement)| match judgement {
        Some(Judgement::Failed { picture, .. }) if !picture.is_empty() => Some(picture.as_str()),
        Some(
            Judgement::Failed { .. }
            | Judgement::Dropped { .. }
            | Judgement::Unused(_)
            | Judgement::Kept,
        )
        | None => None,
    });
    let picture = picture.map_or_else(String::new, |picture| format!("{picture}\n"));
    let now = args.input.now.or_else(|| input::newest_time(&world));
    let compat = input::compat_view(world.lowering().compat(), now);
    let document = || view::document(&rows, compat.clone(), findings.views().to_vec());
    let out = match args.output {
        Output::Table => Printed::Text(table::render(&rows, args.wide)),
        Output::Json => Printed::Document(document::json(&document())?),
        Output::Yaml => Printed::Document(document::yaml(&document())?),
    };
    // An expression that has no answer for any device is wrong, whatever it is meant to keep.
    let fails = |judgement: &Option<Judgement>| matches!(judgement, Some(Judgement::Failed { .. }));
    let useless = !rows.is_empty() && rows.iter().all(|(_, judgement)| fails(judgement));
    let code = if findings.any_error() || useless { NOT_ALL } else { FINE };
    Ok(Answer { out, messages: findings.render_grave() + &picture, code })
}

/// The document where there is no answer: empty, but for what is wrong.
pub(crate) fn no_answer(failure: &Failure) -> DevicesDocument {
    view::document(&[], input::compat_view(&Compat::default(), None), failure.findings())
}

/// What each device is put to.
fn judge(args: &DevicesArgs, world: &World) -> Result<Judge, Failure> {
    let environment = input::cel_environment(world.lowering().compat());
    let mut judge = Judge::default();
    if let Some(name) = &args.class {
        let class = world.lowering().class(name).ok_or_else(|| {
            let known: Vec<&str> = world.lowering().classes().map(|name| &**name).collect();
            let known = if known.is_empty() {
                "no DeviceClass was read".to_owned()
            } else if let [only] = known.as_slice() {
                format!("there is only {only}")
            } else {
                format!("there are {}", known.join(", "))
            };
            Failure::new(format!("There is no DeviceClass {name}: {known}."))
        })?;
        judge.add_class(class, &environment)?;
    }
    if let Some(expression) = &args.filter {
        judge.add("--where", expression, &environment)?;
    }
    Ok(judge)
}
