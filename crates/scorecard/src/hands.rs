//! Does what an [`Act`] says to one owner of a world.
use crate::acts::Act;
use common::conditions::mirror_in;
use common::identity::{Mark, OwnerId, Place};
use common::ledger::Ledger;
use common::names;
use common::testing::evidence::Claims;
use common::testing::{Chance, Key, Object, State, World};
use jiff::SignedDuration;

/// The finalizer of the provider that stands in the peer's place.
pub const PEER: &str = "peer.example/finalizer";

/// Server of moved and copied owners.
const OTHER: usize = 1;

/// Acts in one world on one owner.
pub struct Hands {
    /// The owner on server 0.
    pub key: Key,
    controller: &'static str,
    repair: Option<(String, String, String)>,
    /// Where the copy is, if there is one.
    pub copy: Option<(usize, Key)>,
    /// Acts that did something.
    pub done: Vec<Act>,
}

impl Hands {
    /// For this owner.
    pub fn new(key: Key, controller: &'static str) -> Self {
        Hands { key, controller, repair: None, copy: None, done: Vec::new() }
    }
    fn object(&self, world: &World) -> Option<std::sync::Arc<Object>> {
        world.sim.with(|s| s.servers[0].get(&self.key).cloned())
    }
    /// The owner as it was last stored.
    fn last(&self, world: &World) -> Option<std::sync::Arc<Object>> {
        let of_it =
            |s: &mut State| s.servers[0].log.iter().rev().find_map(|c| c.object.clone().filter(|_| c.key == self.key));
        world.sim.with(of_it)
    }
    fn edit(world: &World, server: usize, key: &Key, change: impl FnOnce(&mut Object)) -> bool {
        world.sim.with(|s| {
            let changed = s.servers[server].edit(key, change);
            s.announce();
            changed
        })
    }
    fn annotate(world: &World, server: usize, key: &Key, name: &str, value: Option<String>) -> bool {
        Hands::edit(world, server, key, |o| match value {
            Some(value) => drop(o.view.annotations.insert(name.to_owned(), value)),
            None => drop(o.view.annotations.remove(name)),
        })
    }
    /// Does it. True if something changed.
    pub fn act(&mut self, world: &mut World, act: Act, chance: &mut Chance) -> bool {
        world.sim.with(|s| s.say(|| format!("USER {act:?}")));
        let done = self.carry_out(world, act, chance);
        if done {
            self.done.push(act);
        }
        done
    }
    fn carry_out(&mut self, world: &mut World, act: Act, chance: &mut Chance) -> bool {
        let key = self.key.clone();
        let (ledger, owner, finalizer) =
            (names::ledger(self.controller), names::owner_id(self.controller), names::finalizer(self.controller));
        let object = self.object(world);
        let deleting = object.as_ref().is_some_and(|o| o.view.deleting);
        match act {
            Act::Delete => self.delete(world, 0, &key),
            Act::CreateAgain if object.is_none() => {
                let Some(last) = self.last(world) else { return false };
                world.create_owner(0, &key.1, last.spec.clone());
                true
            }
            Act::ApplyElsewhere if object.is_none() => {
                let Some(last) = self.last(world) else { return false };
                let Some(id) = last.view.annotations.get(&owner).cloned() else { return false };
                let applied = world.create_owner(OTHER, &format!("{}-again", key.1), last.spec.clone());
                self.copy = Some((OTHER, applied));
                self.ask_copy(world, id)
            }
            Act::DeleteCopy => self.copy.clone().is_some_and(|(server, key)| self.delete(world, server, &key)),
            Act::Edit(edit) => {
                let subject = world.subject.clone();
                Hands::edit(world, 0, &key, |o| {
                    subject.edit(&mut o.spec, edit, chance);
                })
            }
            Act::Confirm => object.is_some_and(|o| {
                Hands::annotate(world, 0, &key, names::CONFIRM_REMOVAL, Some(o.view.generation.to_string()))
            }),
            Act::Strip if !deleting => {
                world.sim.with(|s| s.evidence.harm.ledger = true);
                Hands::edit(world, 0, &key, |o| {
                    o.view.finalizers.retain(|f| *f != finalizer);
                    o.view.annotations.remove(&ledger);
                    o.view.annotations.remove(&owner);
                })
            }
            Act::StripFinalizer if !deleting => {
                Hands::edit(world, 0, &key, |o| o.view.finalizers.retain(|f| *f != finalizer))
            }
            Act::StripLedger => {
                world.sim.with(|s| s.evidence.harm.ledger = true);
                Hands::annotate(world, 0, &key, &ledger, None)
            }
            Act::StripOwnerId => {
                world.sim.with(|s| s.evidence.harm.ledger = true);
                Hands::annotate(world, 0, &key, &owner, None)
            }
            Act::CreateAgain | Act::ApplyElsewhere | Act::Strip | Act::StripFinalizer => false,
            Act::WipeStatus => Hands::edit(world, 0, &key, |o| {
                o.view.conditions.clear();
                o.fields.clear();
            }),
            Act::Rollback => self.rollback(world, &ledger, chance),
            Act::RollbackThatShows => self.rollback_that_shows(world, &ledger, chance),
            Act::CutLedger => self.spoil(world, &ledger, |text| text.chars().take(text.len() / 2).collect()),
            Act::NewerLedger => self.spoil(world, &ledger, |text| text.replacen("\"version\":1", "\"version\":99", 1)),
            Act::ForgeOwnerId => self.swap(world, &owner, |text| text.chars().rev().collect()),
            Act::SpoilOwnerId => self.spoil(world, &owner, |text| text.to_uppercase() + "Z"),
            // somebody who sees that it was mended already leaves it alone
            Act::Repair => match self.repair.take() {
                Some((name, spoilt, value))
                    if object.is_some_and(|o| o.view.annotations.get(&name) == Some(&spoilt)) =>
                {
                    Hands::annotate(world, 0, &key, &name, Some(value))
                }
                _ => false,
            },
            Act::Lose => {
                let recorded = object.is_some_and(|o| o.view.annotations.contains_key(&ledger));
                recorded
                    && world.sim.with(|s| {
                        s.evidence.harm.ledger = true;
                        let lost = s.servers[0].lose(&key);
                        s.announce();
                        lost
                    })
            }
            Act::RestoreBackup => self.restore(world, &ledger, Some(chance)),
            Act::RestoreNewest => self.restore(world, &ledger, None),
            Act::Pause | Act::MovePause => Hands::annotate(world, 0, &key, names::PAUSED, Some(String::new())),
            Act::Unpause => {
                let a = Hands::annotate(world, 0, &key, names::PAUSED, None);
                Hands::annotate(world, 0, &key, names::DELETE_FOR_MOVE, None) || a
            }
            Act::Stranger | Act::ForeignTwin | Act::OtherPlaceTwin => self.plant(world, act, chance),
            Act::Reference => self.reference(world, chance),
            Act::HandDeleteStranger => world.sim.with(|s| {
                let all: Vec<_> = s.cloud.truth().into_iter().filter(|t| t.live && !t.by_controller).collect();
                let Some(thing) = chance.pick(&all) else { return false };
                s.evidence.harm.hand = true;
                let now = s.now();
                s.say(|| format!("  {}", thing.id));
                s.cloud.remove(now, &thing.id);
                true
            }),
            Act::HandDelete | Act::HandUntag | Act::HandRetag => Hands::by_hand(world, act, chance),
            Act::Deny => {
                let permission = chance.pick(&world.subject.permissions());
                world.sim.with(|s| {
                    s.evidence.harm.denied = true;
                    permission.is_some_and(|p| {
                        s.say(|| format!("  without {p}"));
                        s.cloud.deny(&p);
                        true
                    })
                })
            }
            Act::Allow => world.sim.with(|s| {
                s.cloud.allow_all();
                true
            }),
            // before the first ledger there is no account that would be the other one
            Act::OtherAccount if unwritten(world, &ledger) => false,
            Act::OtherAccount => {
                world.sim.with(|s| s.evidence.harm.denied = true);
                switch_account(world, "acct-2")
            }
            Act::RightAccount => switch_account(world, "acct-1"),
            Act::Quota => world.sim.with(|s| {
                s.evidence.harm.denied = true;
                s.cloud.quota(Some(0));
                true
            }),
            Act::NoQuota => world.sim.with(|s| {
                s.cloud.quota(None);
                true
            }),
            Act::FailBuilds => world.sim.with(|s| {
                s.cloud.fail_builds(true);
                true
            }),
            Act::FixBuilds => world.sim.with(|s| {
                s.cloud.fail_builds(false);
                true
            }),
            Act::PeerOn => !deleting && Hands::edit(world, 0, &key, |o| o.view.finalizers.push(PEER.into())),
            Act::PeerOff => Hands::edit(world, 0, &key, |o| o.view.finalizers.retain(|f| f != PEER)),
            Act::ClockJump => world.sim.with(|s| {
                let hour = SignedDuration::from_hours(if chance.one_in(2) { 1 } else { -1 });
                for p in &mut s.processes {
                    p.skew = hour;
                }
                true
            }),
            Act::Outage(target) => world.sim.with(|s| {
                let now = s.now();
                s.wire.outages.push((target, now, now + 60_000));
                true
            }),
            Act::CrashAll => crash_all(world),
            Act::MoveCopy => self.copy_to(world, OTHER, &key.1.clone(), true),
            Act::CopyManifest => self.copy_to(world, OTHER, &key.1.clone(), false),
            Act::CopyName => self.copy_to(world, 0, &format!("{}-copy", key.1), false),
            // clusterctl replaces all annotations of the source
            Act::MoveMark => {
                self.copy.is_some()
                    && Hands::edit(world, 0, &key, |o| {
                        o.view.annotations = [(names::DELETE_FOR_MOVE.to_owned(), String::new())].into();
                    })
            }
            Act::MoveRemove => {
                self.copy.is_some() && {
                    Hands::edit(world, 0, &key, |o| o.view.finalizers.clear());
                    world.sim.with(|s| {
                        let gone = s.servers[0].delete(&key);
                        s.announce();
                        gone
                    })
                }
            }
            Act::MoveUnpause => {
                let copy = self.copy.clone();
                copy.is_some_and(|(server, key)| Hands::annotate(world, server, &key, names::PAUSED, None))
            }
            Act::TakePlace => self.ask_copy(world, self.place(world)),
            Act::TakeBack => Hands::annotate(world, 0, &key, names::TAKE_OVER, Some(self.place(world))),
            Act::TakeOwner => {
                let id = self.copy.clone().and_then(|(server, key)| {
                    world
                        .sim
                        .with(|s| s.servers[server].get(&key).and_then(|o| o.view.annotations.get(&owner).cloned()))
                });
                id.is_some_and(|id| self.ask_copy(world, id))
            }
            Act::TakeNone => self.ask_copy(world, "none".into()),
            Act::SourceTakeNone => {
                world.sim.with(|s| s.evidence.harm.given_up = true);
                Hands::annotate(world, 0, &key, names::TAKE_OVER, Some("none".into()))
            }
        }
    }
    /// The source's place.
    fn place(&self, world: &World) -> String {
        let installation = world.sim.with(|s| s.servers[0].installation.clone());
        Place::of(&installation, self.controller, world.subject.kind(), &self.key.0, &self.key.1).to_string()
    }
    fn ask_copy(&self, world: &World, what: String) -> bool {
        if what == "none" {
            world.sim.with(|s| s.evidence.harm.given_up = true);
        }
        let copy = self.copy.clone();
        copy.is_some_and(|(server, key)| Hands::annotate(world, server, &key, names::TAKE_OVER, Some(what)))
    }
    /// Deletes an owner; without our finalizer its things are lost, and that is the user's doing.
    pub fn delete(&self, world: &World, server: usize, key: &Key) -> bool {
        let finalizer = names::finalizer(self.controller);
        world.sim.with(|s| {
            let held = s.servers[server].get(key).is_some_and(|o| o.view.finalizers.contains(&finalizer));
            let known = s.servers[server]
                .log
                .iter()
                .any(|c| c.key == *key && c.object.as_ref().is_some_and(|o| o.view.finalizers.contains(&finalizer)));
            if !held && known {
                s.evidence.harm.owner = true;
            }
            let now = s.now();
            s.evidence.harm.deleted = Some(now);
            let deleted = s.servers[server].delete(key);
            s.announce();
            deleted
        })
    }
    fn ledgers(&self, world: &World, name: &str) -> Vec<String> {
        world.sim.with(|s| {
            let mut all: Vec<String> = Vec::new();
            for change in s.servers[0].log.iter().filter(|c| c.key == self.key) {
                let text = change.object.as_ref().and_then(|o| o.view.annotations.get(name));
                if let Some(text) = text.filter(|t| Ledger::parse(t).is_ok() && all.last() != Some(*t)) {
                    all.push(text.clone());
                }
            }
            all
        })
    }
    fn rollback(&mut self, world: &World, name: &str, chance: &mut Chance) -> bool {
        let Some(object) = self.object(world) else { return false };
        let uid = object.view.uid.clone();
        let all: Vec<String> = self
            .ledgers(world, name)
            .into_iter()
            .filter(|t| Ledger::parse(t).is_ok_and(|l| l.uid == uid) && object.view.annotations.get(name) != Some(t))
            .collect();
        if !object.view.annotations.contains_key(name) {
            return false;
        }
        let Some(old) = chance.pick(&all) else { return false };
        world.sim.with(|s| {
            s.evidence.harm.ledger = true;
            s.say(|| format!("  back to {old}"));
        });
        let key = self.key.clone();
        Hands::annotate(world, 0, &key, name, Some(old))
    }
    /// To a ledger that status knows to be old, and that lacks nothing but what marks tell: no harm may come of it.
    fn rollback_that_shows(&mut self, world: &World, name: &str, chance: &mut Chance) -> bool {
        let Some(object) = self.object(world) else { return false };
        let read = |text: &String| Ledger::parse(text).ok();
        let Some(now) = object.view.annotations.get(name).and_then(read) else { return false };
        let Some(mirror) = mirror_in(&object.view.conditions, self.controller) else { return false };
        let unmarked = |l: &Ledger| {
            let records = l.records.iter().filter(|(_, r)| r.key().is_some());
            let records: Vec<_> = records.map(|(slot, r)| (slot.clone(), r.clone())).collect();
            (records, l.removing.iter().filter(|r| r.key.is_some()).cloned().collect::<Vec<_>>())
        };
        let shows = |l: &Ledger| l.uid == now.uid && l.seq < mirror.seq && unmarked(l) == unmarked(&now);
        let all: Vec<String> =
            self.ledgers(world, name).into_iter().filter(|text| read(text).is_some_and(|l| shows(&l))).collect();
        let Some(old) = chance.pick(&all) else { return false };
        let key = self.key.clone();
        Hands::annotate(world, 0, &key, name, Some(old))
    }
    fn spoil(&mut self, world: &World, name: &str, how: impl Fn(&str) -> String) -> bool {
        let spoilt = self.swap(world, name, how);
        if spoilt {
            world.sim.with(|s| s.evidence.harm.ledger = true);
        }
        spoilt
    }
    /// Another text in an annotation, until it is repaired.
    fn swap(&mut self, world: &World, name: &str, how: impl Fn(&str) -> String) -> bool {
        let Some(text) = self.object(world).and_then(|o| o.view.annotations.get(name).cloned()) else { return false };
        if self.repair.is_some() {
            return false;
        }
        let spoilt = how(&text);
        self.repair = Some((name.to_owned(), spoilt.clone(), text));
        let key = self.key.clone();
        Hands::annotate(world, 0, &key, name, Some(spoilt))
    }
    fn restore(&self, world: &World, name: &str, chance: Option<&mut Chance>) -> bool {
        let id = names::owner_id(self.controller);
        world.sim.with(|s| {
            if s.servers[0].get(&self.key).is_some() {
                return false;
            }
            let old: Vec<Object> = s.servers[0]
                .log
                .iter()
                .filter(|c| c.key == self.key)
                .filter_map(|c| c.object.as_deref())
                .filter(|o| !o.view.deleting && o.view.annotations.get(name).is_some_and(|t| Ledger::parse(t).is_ok()))
                .filter(|o| o.view.annotations.get(&id).is_none_or(|t| t.parse::<OwnerId>().is_ok()))
                .cloned()
                .collect();
            let picked = match chance {
                Some(chance) => chance.pick(&old),
                None => old.last().cloned(),
            };
            let Some(mut object) = picked else { return false };
            object.view.conditions.clear();
            object.fields.clear();
            s.evidence.harm.ledger = true;
            let made = s.servers[0].create(object);
            s.announce();
            made
        })
    }
    fn copy_to(&mut self, world: &World, server: usize, name: &str, paused: bool) -> bool {
        let Some(object) = self.object(world).filter(|o| !o.view.deleting) else { return false };
        if self.copy.is_some() {
            return false;
        }
        let mut copy = Object::clone(&object);
        name.clone_into(&mut copy.view.name);
        copy.view.conditions.clear();
        copy.fields.clear();
        if paused {
            copy.view.annotations.insert(names::PAUSED.into(), String::new());
        }
        let key = (copy.view.namespace.clone(), copy.view.name.clone());
        let made = world.sim.with(|s| {
            s.evidence.harm.copied = true;
            let made = s.servers[server].create(copy);
            s.announce();
            made
        });
        if made {
            self.copy = Some((server, key));
        }
        made
    }
    fn plant(&self, world: &World, act: Act, chance: &mut Chance) -> bool {
        let Some(object) = self.object(world) else { return false };
        let subject = world.subject.clone();
        let claims = self.claims(world);
        world.sim.with(|s| {
            let twins = subject.twins(&self.key.1, &object.spec, s.cloud.as_ref());
            let Some(twin) = chance.pick(&twins) else { return false };
            let slot = chance.pick(&subject.wanted(&object.spec)).and_then(|slot| slot.parse().ok());
            let elsewhere = Place::of("elsewhere", "other", "Owner", "ns", "b");
            let mark = match (act, slot, claims.ids.iter().next()) {
                (Act::ForeignTwin, Some(slot), _) => {
                    Some(Mark { owner: OwnerId::from_bits([7; 16]), place: elsewhere, slot, adopted: None })
                }
                (Act::OtherPlaceTwin, Some(slot), Some(id)) => {
                    Some(Mark { owner: *id, place: elsewhere, slot, adopted: None })
                }
                (Act::OtherPlaceTwin, ..) => return false,
                _ => None,
            };
            s.evidence.harm.stranger = true;
            let now = s.now();
            let made = s.cloud.plant(now, &twin, mark.as_ref());
            s.say(|| format!("  {made:?} {mark:?}"));
            made.is_some()
        })
    }
    fn reference(&self, world: &World, chance: &mut Chance) -> bool {
        let Some(object) = self.object(world) else { return false };
        let subject = world.subject.clone();
        let planted = world.sim.with(|s| {
            let twin = chance.pick(&subject.twins(&self.key.1, &object.spec, s.cloud.as_ref()))?;
            let now = s.now();
            Some((s.cloud.plant(now, &twin, None)?, twin.kind))
        });
        planted.is_some_and(|(id, kind)| {
            Hands::edit(world, 0, &self.key, |o| {
                subject.refer(&mut o.spec, &kind, &id);
            })
        })
    }
    fn claims(&self, world: &World) -> Claims {
        world.sim.with(|s| Claims::of(&s.servers[0], &self.key, self.controller, s.evidence.kind))
    }
    fn by_hand(world: &World, act: Act, chance: &mut Chance) -> bool {
        world.sim.with(|s| {
            let ours: Vec<_> = s.cloud.truth().into_iter().filter(|t| t.live && t.by_controller).collect();
            let Some(thing) = chance.pick(&ours) else { return false };
            s.evidence.harm.hand = true;
            s.say(|| format!("  {}", thing.id));
            let now = s.now();
            if act != Act::HandDelete {
                s.evidence.touched.insert(thing.id.clone());
            }
            match act {
                Act::HandDelete => s.cloud.remove(now, &thing.id),
                Act::HandUntag => s.cloud.retag(now, &thing.id, None),
                _ => {
                    let Some(mut mark) = thing.mark().cloned() else { return false };
                    mark.owner = OwnerId::from_bits([9; 16]);
                    s.cloud.retag(now, &thing.id, Some(&mark));
                }
            }
            true
        })
    }
}

/// Is there an owner without a ledger?
fn unwritten(world: &World, ledger: &str) -> bool {
    world.sim.with(|s| s.servers[0].objects().any(|(_, o)| !o.view.annotations.contains_key(ledger)))
}

fn crash_all(world: &mut World) -> bool {
    let all: Vec<usize> = world.processes.iter().map(|p| p.id).collect();
    for id in all {
        world.crash(id);
    }
    true
}
/// Other credentials come with a restart: a token never changes its account.
fn switch_account(world: &mut World, name: &str) -> bool {
    let other = world.sim.with(|s| s.cloud.current_account() != name);
    if other {
        world.sim.with(|s| s.cloud.account(name));
        crash_all(world);
    }
    other
}
