//! The whole chain, from YAML to documents, sentences, cures and writes, over small worlds.

#[cfg(test)]
#[path = "../chance/mod.rs"]
mod chance;
#[cfg(test)]
mod cures;
#[cfg(test)]
mod edits;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod gangs;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod support;
#[cfg(test)]
mod writes;
#[cfg(test)]
mod written;
