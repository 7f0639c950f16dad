//! The first by name of the sets that cost the same, where the search goes through requests in another
//! order than names do.

use super::bits;
use super::choose::{Price, Standing};
use super::problem::Problem;
use super::search::{Aim, Chosen, search_from};

/// Of the sets that cost as `found` does, the first in the order of claims and requests. `found` is the
/// first in the order of the problem's lines, which have one alternative each. None where the bound
/// ended it.
pub(super) fn first_by_name(
    p: &Problem<'_>,
    found: &(Standing, Vec<Chosen>),
    steps: &mut u64,
) -> Option<Vec<Chosen>> {
    let price = found.0.price;
    let mut first = found.1.clone();
    let mut lines: Vec<usize> = (0..p.lines.len()).collect();
    lines.sort_by_key(|at| (p.lines[*at].claim, p.lines[*at].request));
    // What each line's devices begin with, and whether `first` was looked for with just that.
    let mut firsts: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    let mut fresh = true;
    for (n, &line) in lines.iter().enumerate() {
        // A line of which all before it are known has its first devices in the first set of all.
        if (0..line).all(|before| lines[..n].contains(&before)) {
            if !fresh {
                first = with(p, price, &firsts, steps)??;
                fresh = true;
            }
            firsts[line] = of_line(&first, line).collect();
            continue;
        }
        fresh = false;
        for number in 0..of_line(&first, line).count() {
            let from = firsts[line].last().map_or(0, |last| last + 1);
            let to = of_line(&first, line).nth(number)?;
            let fit = p.lines[line].choices.first().map(|choice| &choice.fit)?;
            let earlier = bits::iter(fit).filter(|at| (from..to).contains(at));
            let mut own = to;
            for position in earlier {
                firsts[line].push(position);
                let better = with(p, price, &firsts, steps)?;
                firsts[line].pop();
                if let Some(better) = better {
                    (own, first) = (position, better);
                    break;
                }
            }
            firsts[line].push(own);
        }
    }
    Some(first)
}

fn of_line(chosen: &[Chosen], line: usize) -> impl Iterator<Item = usize> {
    chosen.iter().filter(move |c| c.line == line).map(|c| c.position)
}

/// The first set of this price whose lines begin with these positions, if there is one; none where the
/// bound ended it.
fn with(
    p: &Problem<'_>,
    price: Price,
    firsts: &[Vec<usize>],
    steps: &mut u64,
) -> Option<Option<Vec<Chosen>>> {
    let outcome = search_from(p, Aim::FirstAt(price), firsts, steps);
    match outcome.best {
        Some((_, chosen)) => Some(Some(chosen)),
        None => (!outcome.cut).then_some(None),
    }
}
