//! What gzip packed, unpacked as gzip does it: streams that follow each other are one text, and what
//! follows the last one is left out, of which zeros are not worth a word. What the text is, and what is
//! said, is left to others.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// How a stream begins.
pub(crate) const GZIP: [u8; 2] = [0x1F, 0x8B];

type Packed<'a> = BufReader<Box<dyn Read + 'a>>;

/// The text of all streams. `trailing` is set where something follows the last that gzip did not make.
pub(crate) struct Streams<'a> {
    stream: Option<GzDecoder<Packed<'a>>>,
    trailing: &'a Cell<bool>,
}

impl<'a> Streams<'a> {
    pub(crate) fn new(packed: Box<dyn Read + 'a>, trailing: &'a Cell<bool>) -> Self {
        Self { stream: Some(GzDecoder::new(BufReader::new(packed))), trailing }
    }
}

impl Read for Streams<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(stream) = &mut self.stream {
            let read = stream.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(ended) = self.stream.take() else { break };
            let mut packed = ended.into_inner();
            if begins_another(&mut packed)? {
                self.stream = Some(GzDecoder::new(packed));
            } else if !only_zeros(&mut packed)? {
                self.trailing.set(true);
            }
        }
        Ok(0)
    }
}

/// Whether a stream follows. One byte alone at the end of what is at hand decides for both.
fn begins_another(packed: &mut Packed<'_>) -> io::Result<bool> {
    let at_hand = packed.fill_buf()?;
    Ok(match at_hand {
        [] => false,
        [first] => *first == GZIP[0],
        [first, second, ..] => [*first, *second] == GZIP,
    })
}

/// Whether nothing but zeros follows, with which tapes are filled up.
fn only_zeros(packed: &mut Packed<'_>) -> io::Result<bool> {
    loop {
        let at_hand = packed.fill_buf()?;
        if at_hand.is_empty() {
            return Ok(true);
        }
        if at_hand.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        let all = at_hand.len();
        packed.consume(all);
    }
}
