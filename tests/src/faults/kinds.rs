//! What can go wrong, and what that means for a program without a debugger.

use std::fmt;

use serde::Serialize;

/// What goes wrong while a call is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `kill -9` of central; then it is opened again.
    CentralKilled,
    /// SIGSTOP of central for longer than its lease, then SIGCONT.
    CentralStopped,
    /// The same for so short that nobody may notice.
    CentralSlow,
    /// The connection of the process that holds the call is closed.
    ConnectionCut,
    /// It stays open, but nothing comes through any more, in one direction or in both.
    ConnectionHalfOpen,
    /// Every packet between central and the services is lost, over TCP with TLS.
    NetworkCut,
    /// Central speaks another version from now on, and all must dial again.
    VersionMismatch,
    /// Some connect to central and say nothing, others a byte now and then.
    Strangers,
    /// `kill -9` of a service.
    ServiceKilled,
    /// SIGSTOP of a service, then SIGCONT.
    ServiceStopped,
    /// A service calls `exit`.
    ServiceExits,
    /// `main` of a service returns, and its runtime is shut down.
    RuntimeShutDown,
    /// The held handler panics, and its task unwinds.
    PanicUnwinds,
    /// The held handler panics, and that ends its process.
    PanicAborts,
    /// The disk with the recording is full.
    DiskFull,
}

impl Kind {
    /// All that there are.
    pub const ALL: [Self; 15] = [
        Self::CentralKilled,
        Self::CentralStopped,
        Self::CentralSlow,
        Self::ConnectionCut,
        Self::ConnectionHalfOpen,
        Self::NetworkCut,
        Self::VersionMismatch,
        Self::Strangers,
        Self::ServiceKilled,
        Self::ServiceStopped,
        Self::ServiceExits,
        Self::RuntimeShutDown,
        Self::PanicUnwinds,
        Self::PanicAborts,
        Self::DiskFull,
    ];

    /// Whether it would happen to the program without a debugger, too. Then the held call
    /// waits for an order, so that it stands at the same place in both runs.
    pub fn is_of_the_program(self) -> bool {
        self.ends_a_service() || matches!(self, Self::ServiceStopped | Self::PanicUnwinds)
    }

    /// Whether a service is gone afterwards.
    pub fn ends_a_service(self) -> bool {
        matches!(
            self,
            Self::ServiceKilled | Self::ServiceExits | Self::RuntimeShutDown | Self::PanicAborts
        )
    }

    /// Whether the held handler itself does it.
    pub fn is_panic(self) -> bool {
        matches!(self, Self::PanicUnwinds | Self::PanicAborts)
    }

    /// What must stand between the services and central.
    pub fn way(self) -> Way {
        match self {
            Self::ConnectionCut | Self::ConnectionHalfOpen | Self::VersionMismatch => Way::Relay,
            Self::NetworkCut => Way::Network,
            _ => Way::Direct,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How the services reach central.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Over its Unix socket.
    Direct,
    /// Over another one, which passes on what it is told to.
    Relay,
    /// Over TCP with TLS, between two network namespaces.
    Network,
}
