//! Two network namespaces with a cable between them: one for central, one for the services.
//! Nothing of it touches the network of the machine, and it needs root.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where central is.
pub(super) const CENTRAL: &str = "198.18.0.1";
const SERVICES: &str = "198.18.0.2";

/// The two namespaces. They are gone with this.
pub(super) struct Network {
    central: String,
    services: String,
}

impl Network {
    /// Makes both, or says why it cannot.
    pub(super) fn make() -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("ddbx{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        ip(&["netns", "add", &format!("{prefix}c")])?;
        let network = Self { central: format!("{prefix}c"), services: format!("{prefix}s") };
        let (central, services) = (network.central.as_str(), network.services.as_str());
        ip(&["netns", "add", services])?;
        let cable = ["link", "add", "cable", "netns", central, "type", "veth"];
        ip(&[&cable[..], &["peer", "name", "cable", "netns", services]].concat())?;
        for (space, address) in [(central, CENTRAL), (services, SERVICES)] {
            ip(&["-n", space, "addr", "add", &format!("{address}/30"), "dev", "cable"])?;
            ip(&["-n", space, "link", "set", "lo", "up"])?;
            ip(&["-n", space, "link", "set", "cable", "up"])?;
        }
        Ok(network)
    }

    /// This thread, and whatever it starts, is where central is from now on.
    pub(super) fn enter(&self) -> Result<(), String> {
        let path = format!("/run/netns/{}", self.central);
        let space = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| format!("{path}: {error}"))
    }

    /// A command that runs where the services are.
    pub(super) fn among_services(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.services]).arg(command.get_program());
        inside.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside.current_dir(command.get_current_dir().unwrap_or(".".as_ref()));
        inside
    }

    /// From now on every packet between the two is lost, and nobody is told. Where the
    /// kernel has no netem, central's end of the cable is switched off: the other end has a
    /// link and an address still, and what it sends goes nowhere.
    pub(super) fn cut(&self) -> Result<(), String> {
        let lossy = |space: &str| {
            let lossy = ["-n", space, "qdisc", "add", "dev", "cable", "root", "netem", "loss"];
            run("tc", &[&lossy[..], &["100%"]].concat())
        };
        match lossy(&self.central) {
            Ok(()) => lossy(&self.services),
            Err(_) => ip(&["-n", &self.central, "link", "set", "cable", "down"]),
        }
    }

    /// Packets come through again.
    pub(super) fn mend(&self) -> Result<(), String> {
        for space in [&self.central, &self.services] {
            // There is nothing to remove where there is no netem.
            let _ = run("tc", &["-n", space, "qdisc", "del", "dev", "cable", "root"]);
        }
        ip(&["-n", &self.central, "link", "set", "cable", "up"])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in [&self.central, &self.services] {
            let _ = ip(&["netns", "del", space]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let command = || format!("`{program} {}`", words.join(" "));
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{}: {error}", command()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", command(), String::from_utf8_lossy(&output.stderr).trim()))
}
