//! Listings: what they show when, and page by page.
use super::kinds::Kind;
use super::replies::{Refused, json};
use super::store::{Shown, Store};
use crate::kit::dice::Dice;
use crate::kit::{Answer, Call, Settings, strict};
use http::StatusCode;
use serde::Serialize;

const DEFAULT_LIMIT: u64 = 50;
const MOST: u64 = 100;

/// Where the next page goes on. Things are listed by the number in their id, so that a page token stays good while things come
/// and go: what is there during the whole listing is shown exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    from: u32,
    /// The page before this one was empty: no two in a row, or a listing might never end.
    after_empty: bool,
}
impl Cursor {
    fn token(self, kind: Kind) -> String {
        format!("{:08x}{}{:08x}", self.from, u8::from(self.after_empty), self.seal(kind))
    }
    fn parse(kind: Kind, token: &str) -> Option<Cursor> {
        if token.len() != 17 || !token.is_ascii() {
            return None;
        }
        let from = u32::from_str_radix(&token[..8], 16).ok()?;
        let cursor = Cursor { from, after_empty: &token[8..9] == "1" };
        (cursor.token(kind) == token).then_some(cursor)
    }
    /// Tells a token of ours, for this kind, from one that was made up.
    fn seal(self, kind: Kind) -> u32 {
        let number = u32::try_from(kind.index()).unwrap_or_default() * 2 + u32::from(self.after_empty);
        (self.from ^ 0x5bd1_e995).rotate_left(7 + number).wrapping_mul(0x9e37_79b1)
    }
}

#[derive(Serialize)]
struct Page<'s> {
    items: Vec<Shown<'s>>,
    next: Option<String>,
}

/// `GET /v1/{plural}`.
pub(super) fn list(
    store: &mut Store,
    settings: &Settings,
    dice: &mut Dice,
    kind: Kind,
    call: Call<'_>,
) -> Result<Answer, Refused> {
    let (limit, cursor) = parameters(kind, call)?;
    let mut most = limit.min(settings.paging.max);
    if settings.paging.ragged {
        let least = u64::from(cursor.after_empty);
        most = least + dice.up_to(most - least);
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    store.sweep(kind, call.now);
    let account = &*call.principal.account;
    let mut visible = store
        .listed(kind, cursor.from)
        .filter(|thing| &*thing.account == account && thing.listed_from <= call.now)
        .map(|thing| Shown { thing, now: call.now, in_listing: true });
    let items: Vec<_> = visible.by_ref().take(most).collect();
    let next = visible.next().map(|first| {
        let after_empty = items.is_empty();
        // An empty page goes on where it began.
        let from = if after_empty { cursor.from } else { first.thing.number };
        Cursor { from, after_empty }.token(kind)
    });
    Ok(Answer::new(StatusCode::OK, json(&Page { items, next })))
}

fn parameters(kind: Kind, call: Call<'_>) -> Result<(u64, Cursor), Refused> {
    let mut limit = DEFAULT_LIMIT;
    let mut cursor = Cursor { from: 0, after_empty: false };
    for (name, value) in strict::query(call.request).map_err(Refused::invalid)? {
        match name.as_str() {
            "limit" => {
                let number = value.parse().ok().filter(|number| (1..=MOST).contains(number));
                limit = number.ok_or_else(|| Refused::invalid(format!("limit is not between 1 and {MOST}")))?;
            }
            "page" => {
                let parsed = Cursor::parse(kind, &value);
                cursor = parsed.ok_or_else(|| Refused::invalid("page is no page token of this listing"))?;
            }
            _ => return Err(Refused::invalid(format!("unknown query parameter {name}"))),
        }
    }
    strict::no_body(call.request).map_err(Refused::invalid)?;
    Ok((limit, cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_own_kind_only_and_cannot_be_made_up() {
        let cursor = Cursor { from: 0xdead_beef, after_empty: true };
        let token = cursor.token(Kind::Disk);
        assert_eq!(Cursor::parse(Kind::Disk, &token), Some(cursor));
        assert_eq!(Cursor::parse(Kind::Route, &token), None);
        for wrong in ["", "0", "00000000000000000", &token.to_uppercase(), &format!("{token}0")] {
            assert_eq!(Cursor::parse(Kind::Disk, wrong), None, "{wrong}");
        }
    }
}
