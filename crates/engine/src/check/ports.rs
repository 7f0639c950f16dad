//! NodePorts: host ports that are asked for against those that pods on the node have. Ports of one
//! pod among themselves are not compared.

use super::Failing;
use crate::decision::Facts;
use crate::pods::HostPort;
use crate::reason::{Reason, Status};

/// Whether all of the ports are free.
pub(crate) fn free(wanted: &[HostPort], used: &[(HostPort, u32)]) -> Result<(), Failing> {
    for asked in wanted {
        let taken = used.iter().map(|(port, _)| port).filter(|port| port.clashes_with(asked)).min();
        if let Some(taken) = taken {
            let facts = Facts::Port { asked: asked.clone(), taken: taken.clone() };
            return Err(Failing::new(Reason::PortsTaken, Status::Unschedulable).with(facts));
        }
    }
    Ok(())
}
