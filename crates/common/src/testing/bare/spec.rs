//! The spec of a bare owner: a list of pieces.
use super::{ADDR, BOX, DISK, NET, ROUTE};
use crate::engine::estate::{Draft, Ids, Piece, Want};
use crate::identity::{Slot, Then};
use crate::testing::chance::Chance;
use crate::testing::cloud::Twin;
use crate::testing::subject::{Edit, Variety};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PieceSpec {
    pub(super) slot: Slot,
    pub(super) size: u32,
    #[serde(default)]
    pub(super) needs: Vec<Slot>,
    #[serde(default)]
    pub(super) adopt: Option<Then>,
    #[serde(default, rename = "use")]
    pub(super) uses: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) pieces: Vec<PieceSpec>,
}

impl Spec {
    pub(super) fn read(value: &Value) -> Spec {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
    fn key(&self, slot: &Slot) -> String {
        format!("{}/{slot}", self.name)
    }
    /// The wanted pieces, as far as what they need has an id.
    pub(super) fn pieces(&self, ids: &Ids) -> Vec<Piece> {
        let wanted = |slot: &Slot| self.pieces.iter().any(|p| p.slot == *slot);
        self.pieces
            .iter()
            .map(|p| {
                let needs: Vec<Slot> = p.needs.iter().filter(|n| wanted(n)).cloned().collect();
                let needed: Option<Vec<&String>> = needs.iter().map(|n| ids.get(n)).collect();
                let draft = |needed| Draft { key: self.key(&p.slot), params: json!({"size": p.size, "on": needed}) };
                let want = match &p.uses {
                    Some(id) => Want::Use { id: id.clone() },
                    None => Want::Make { draft: needed.map(draft), adopt: p.adopt },
                };
                Piece { slot: p.slot.clone(), needs, want }
            })
            .collect()
    }
    /// What a stranger might make in the way of a piece: equal, or of another size; on what the piece stands on, if that is
    /// there.
    pub(super) fn twins(&self, ids: &Ids) -> Vec<Twin> {
        let mut twins = Vec::new();
        for p in &self.pieces {
            let on: Vec<&String> = p.needs.iter().filter_map(|n| ids.get(n)).collect();
            for size in [p.size, p.size + 7] {
                let params = json!({"key": self.key(&p.slot), "params": {"size": size, "on": on}});
                twins.push(Twin { kind: p.slot.kind().into(), params });
            }
        }
        twins
    }
}

fn piece(kind: &str, suffix: &str, needs: &[&Slot]) -> Option<PieceSpec> {
    let slot = Slot::new(kind, Some(suffix)).ok()?;
    Some(PieceSpec { slot, size: 1, needs: needs.iter().map(|s| (*s).clone()).collect(), adopt: None, uses: None })
}

/// A spec of the asked variety.
pub(super) fn draw(name: &str, variety: Variety, chance: &mut Chance) -> Spec {
    let mut spec = Spec { name: name.into(), pieces: Vec::new() };
    let mut add = |kind: &str, suffix: String, needs: &[&Slot]| -> Option<Slot> {
        let piece = piece(kind, &suffix, needs)?;
        let slot = piece.slot.clone();
        spec.pieces.push(piece);
        Some(slot)
    };
    let counts: [u64; 5] = match variety {
        Variety::Fixed => [1, 1, 1, 1, 1],
        Variety::Twelve => [2, 4, 2, 2, 2],
        Variety::Plain | Variety::Everything => {
            [1 + chance.below(2), chance.below(3), chance.below(3), chance.below(2), chance.below(2)]
        }
    };
    let nets: Vec<Slot> = (0..counts[0]).filter_map(|n| add(NET, n.to_string(), &[])).collect();
    let on = |chance: &mut Chance| nets.get(chance.index(nets.len())).cloned();
    for n in 0..counts[1] {
        add(DISK, n.to_string(), &[]);
    }
    for (kind, count) in [(ADDR, counts[2]), (ROUTE, counts[3]), (BOX, counts[4])] {
        for n in 0..count {
            let net = on(chance);
            add(kind, n.to_string(), &net.iter().collect::<Vec<_>>());
        }
    }
    if variety == Variety::Twelve {
        // four waves: net, disk on net, addr and route on net and disk, box
        let disks: Vec<Slot> = spec.pieces.iter().filter(|p| p.slot.kind() == DISK).map(|p| p.slot.clone()).collect();
        for p in &mut spec.pieces {
            match p.slot.kind() {
                DISK => p.needs.extend(nets.first().cloned()),
                ADDR | ROUTE => p.needs.extend(disks.first().cloned()),
                _ => {}
            }
        }
        let addresses: Vec<Slot> =
            spec.pieces.iter().filter(|p| p.slot.kind() == ADDR).map(|p| p.slot.clone()).collect();
        for p in spec.pieces.iter_mut().filter(|p| p.slot.kind() == BOX) {
            p.needs.extend(addresses.first().cloned());
        }
    }
    if variety == Variety::Everything {
        for p in &mut spec.pieces {
            if p.slot.kind() != ROUTE && chance.one_in(4) {
                p.adopt = Some(if chance.one_in(2) { Then::Delete } else { Then::Release });
            }
        }
    }
    spec
}

/// A piece that uses somebody else's net or disk.
pub(super) fn refer(spec: &mut Spec, kind: &str, id: &str) -> bool {
    if kind != NET && kind != DISK {
        return false;
    }
    let piece = piece(kind, "used", &[]).map(|p| PieceSpec { uses: Some(id.into()), ..p });
    let free = |p: &PieceSpec| !spec.pieces.iter().any(|q| q.slot == p.slot);
    piece.filter(free).map(|p| spec.pieces.push(p)).is_some()
}

/// Edits a spec.
pub(super) fn edit(spec: &mut Spec, edit: Edit, chance: &mut Chance) -> bool {
    let index = chance.index(spec.pieces.len());
    match edit {
        Edit::Change => spec.pieces.get_mut(index).map(|p| p.size += 1).is_some(),
        Edit::Remove => {
            if spec.pieces.len() > 1 {
                spec.pieces.remove(index);
                true
            } else {
                false
            }
        }
        Edit::Add => {
            let kind = chance.pick(&[NET, DISK, ADDR, ROUTE]).unwrap_or(NET);
            let taken = |s: &Slot| spec.pieces.iter().any(|p| p.slot == *s);
            let free = (0..20).filter_map(|n| piece(kind, &n.to_string(), &[])).find(|p| !taken(&p.slot));
            free.map(|p| spec.pieces.push(p)).is_some()
        }
        Edit::RemoveMost => {
            let many = spec.pieces.len() > 2;
            spec.pieces.truncate(1);
            many
        }
    }
}
