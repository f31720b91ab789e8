//! The kinds of things, and how paths name them.
use crate::kit::{Naming, Request};
use http::Method;

/// A kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Server,
    Port,
    Trunk,
    Volume,
    FloatingIp,
    Network,
    Subnet,
    SecurityGroup,
    Router,
    Image,
    Flavor,
    ServerGroup,
    Keypair,
    Balancer,
    Listener,
    Pool,
    Member,
}
pub(super) const ALL: [Kind; 17] = [
    Kind::Server,
    Kind::Port,
    Kind::Trunk,
    Kind::Volume,
    Kind::FloatingIp,
    Kind::Network,
    Kind::Subnet,
    Kind::SecurityGroup,
    Kind::Router,
    Kind::Image,
    Kind::Flavor,
    Kind::ServerGroup,
    Kind::Keypair,
    Kind::Balancer,
    Kind::Listener,
    Kind::Pool,
    Kind::Member,
];
/// Words of paths, permissions, faults and settings.
pub(super) const WORDS: [&str; 26] = [
    "servers",
    "ports",
    "trunks",
    "volumes",
    "floatingips",
    "networks",
    "subnets",
    "security-groups",
    "routers",
    "images",
    "flavors",
    "os-server-groups",
    "os-keypairs",
    "loadbalancers",
    "listeners",
    "pools",
    "members",
    "tokens",
    "extensions",
    "versions",
    "limits",
    "os-availability-zone",
    "types",
    "cores",
    "ram",
    "gigabytes",
];
pub(super) const VERBS: [&str; 9] = ["list", "get", "create", "update", "tag", "mark", "action", "free", "delete"];

/// Which service a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Identity,
    Compute,
    Network,
    Image,
    Volume,
    Balancer,
}

impl Kind {
    /// In paths.
    pub(super) fn plural(self) -> &'static str {
        WORDS[self.index()]
    }
    pub(super) fn index(self) -> usize {
        ALL.iter().position(|kind| *kind == self).unwrap_or_default()
    }
    /// In bodies, one of them.
    pub(super) fn one(self) -> &'static str {
        match self {
            Kind::Server => "server",
            Kind::Port => "port",
            Kind::Trunk => "trunk",
            Kind::Volume => "volume",
            Kind::FloatingIp => "floatingip",
            Kind::Network => "network",
            Kind::Subnet => "subnet",
            Kind::SecurityGroup => "security_group",
            Kind::Router => "router",
            Kind::Image => "image",
            Kind::Flavor => "flavor",
            Kind::ServerGroup => "server_group",
            Kind::Keypair => "keypair",
            Kind::Balancer => "loadbalancer",
            Kind::Listener => "listener",
            Kind::Pool => "pool",
            Kind::Member => "member",
        }
    }
    /// In bodies, many of them.
    pub(super) fn many(self) -> String {
        match self {
            Kind::Keypair => "keypairs".to_owned(),
            kind => format!("{}s", kind.one()),
        }
    }
    /// In the truth and for hands: the word of the administration.
    pub(super) fn word(self) -> &'static str {
        if self == Kind::FloatingIp { "fip" } else { self.one() }
    }
    pub(super) fn by_word(word: &str) -> Option<Kind> {
        ALL.into_iter().find(|kind| kind.word() == word || kind.one() == word || kind.plural() == word)
    }
    pub(super) fn service(self) -> Service {
        match self {
            Kind::Server | Kind::Flavor | Kind::ServerGroup | Kind::Keypair => Service::Compute,
            Kind::Volume => Service::Volume,
            Kind::Image => Service::Image,
            Kind::Balancer | Kind::Listener | Kind::Pool | Kind::Member => Service::Balancer,
            _ => Service::Network,
        }
    }
    /// Things that owners make; the others are part of the scenery.
    pub(super) fn is_made(self) -> bool {
        matches!(self, Kind::Server | Kind::Port | Kind::Trunk | Kind::Volume | Kind::FloatingIp | Kind::Member)
    }
}

/// The path below a service's endpoint, and whose it is.
pub(super) fn split(path: &str) -> Option<(Service, Vec<&str>)> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let service = match parts.next()? {
        "identity" => Service::Identity,
        "compute" => Service::Compute,
        "networking" => Service::Network,
        "image" => Service::Image,
        "volume" => Service::Volume,
        "load-balancer" => Service::Balancer,
        _ => return None,
    };
    let version = match service {
        Service::Identity | Service::Volume => "v3",
        Service::Compute => "v2.1",
        Service::Network | Service::Balancer => "v2.0",
        Service::Image => "v2",
    };
    let rest: Vec<&str> = parts.collect();
    match rest.split_first() {
        None => Some((service, Vec::new())),
        Some((first, rest)) if *first == version => {
            // Cinder's paths name the project, Octavia's the API.
            let skip = usize::from(matches!(service, Service::Volume | Service::Balancer));
            Some((service, rest.iter().skip(skip).copied().collect()))
        }
        Some(_) => None,
    }
}

/// Names a request by method and path. An empty verb: the path may exist, this call does not.
pub(super) fn name(request: &Request) -> Naming<'_> {
    let read = request.method() == Method::GET;
    let mut naming = Naming { kind: "", verb: "", thing: None, mutating: !read };
    let Some((service, parts)) = split(request.uri().path()) else { return naming };
    let method = request.method().as_str();
    let simple = match (service, method, parts.as_slice()) {
        (Service::Identity, "POST", ["auth", "tokens"]) => {
            // Asking for a token changes nothing that anybody owns.
            naming.mutating = false;
            ("tokens", "create")
        }
        (_, "GET", []) => ("versions", "get"),
        (Service::Network, "GET", ["extensions"]) => ("extensions", "list"),
        (Service::Compute | Service::Volume, "GET", ["limits"])
        | (Service::Network, "GET", ["quotas", _, "details"]) => ("limits", "get"),
        (Service::Volume, "GET", ["types"]) => ("types", "list"),
        (Service::Compute, "GET", ["os-availability-zone"]) => ("os-availability-zone", "list"),
        _ => ("", ""),
    };
    if !simple.0.is_empty() {
        (naming.kind, naming.verb) = simple;
        return naming;
    }
    // Members are known within their pool only.
    let parts = match parts.as_slice() {
        ["pools", _, rest @ ..] if rest.first() == Some(&"members") => rest.to_vec(),
        _ => parts,
    };
    let Some(kind) = parts.first().and_then(|word| ALL.into_iter().find(|kind| kind.plural() == *word)) else {
        return naming;
    };
    if kind.service() != service {
        return naming;
    }
    naming.kind = kind.plural();
    naming.thing = parts.get(1).copied().filter(|it| *it != "detail");
    naming.verb = match (method, &parts[1..]) {
        ("GET", [] | ["detail"]) => "list",
        ("GET", [_]) => "get",
        ("POST", []) => "create",
        ("PUT", [_]) => "update",
        ("DELETE", [_]) => "delete",
        ("PUT", [_, "tags"]) => "tag",
        ("POST", [_, "metadata"]) | ("DELETE", [_, "metadata", _]) => "mark",
        ("POST", [_, "action"]) => "action",
        ("PUT", [_, "remove_subports" | "add_subports"]) => "free",
        _ => "",
    };
    naming
}
