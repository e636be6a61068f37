/// Characters of an id that are shown at least.
const SHORT_ID: usize = 12;

/// The beginning of an id, enough to identify it in most sessions.
pub(crate) fn short_id(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// For each id a beginning that no other of them has: it can be pasted wherever an id is asked for.
pub(crate) fn unique_ids(ids: &[&str]) -> Vec<String> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    let id = |at: usize| ids.get(at).copied().unwrap_or_default();
    order.sort_by_key(|at| id(*at));
    // In alphabetical order, an id shares most with one of its neighbours.
    let mut shared = vec![0; ids.len()];
    for pair in order.windows(2) {
        let [one, other] = pair else { continue };
        let common = common_chars(id(*one), id(*other));
        for at in [*one, *other] {
            if let Some(most) = shared.get_mut(at) {
                *most = common.max(*most);
            }
        }
    }
    let length = |shared: usize| SHORT_ID.max(shared + 1);
    ids.iter().zip(shared).map(|(id, shared)| id.chars().take(length(shared)).collect()).collect()
}

fn common_chars(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_as_long_as_it_must_be() {
        let ids = ["0198c5e2-7a31-aaaa", "0198c5e2-7a31-abbb", "e_1", "another-one-of-many"];
        assert_eq!(
            unique_ids(&ids),
            ["0198c5e2-7a31-aa", "0198c5e2-7a31-ab", "e_1", "another-one-"]
        );
        assert_eq!(unique_ids(&["same-id-of-two", "same-id-of-two"]), ["same-id-of-two"; 2]);
        assert_eq!(unique_ids(&[]), Vec::<String>::new());
    }
}
