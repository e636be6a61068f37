/// A number with its noun: `1 entry`, `3 entries`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Tokens in few letters: `812`, `4.2k`, `31k`, `1.5M`.
pub(crate) fn tokens(number: u64) -> String {
    let tenths = |unit: u64| (number / unit, number % unit * 10 / unit);
    match number {
        0..1_000 => number.to_string(),
        1_000..10_000 => {
            let (whole, tenth) = tenths(1_000);
            format!("{whole}.{tenth}k")
        }
        10_000..1_000_000 => format!("{}k", number / 1_000),
        _ => {
            let (whole, tenth) = tenths(1_000_000);
            format!("{whole}.{tenth}M")
        }
    }
}

/// A price in dollars; nothing for nothing.
pub(crate) fn cost(usd: f64) -> String {
    if usd <= 0.0 || !usd.is_finite() {
        String::new()
    } else if usd < 0.01 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

/// A size: `812 B`, `4.2 kB`, `31 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number;
    let mut unit = "B";
    let mut tenth = None;
    for next in ["kB", "MB", "GB", "TB"] {
        if value < 1_000 {
            break;
        }
        tenth = Some(value % 1_000 / 100);
        value /= 1_000;
        unit = next;
    }
    match tenth {
        Some(tenth) if value < 10 => format!("{value}.{tenth} {unit}"),
        _ => format!("{value} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_few_letters() {
        assert_eq!([812, 4_249, 31_999, 1_550_000].map(tokens), ["812", "4.2k", "31k", "1.5M"]);
        assert_eq!([0, 999, 4_200, 31_000_000].map(bytes), ["0 B", "999 B", "4.2 kB", "31 MB"]);
        assert_eq!([0.0, 0.0042, 0.126, f64::NAN].map(cost), ["", "$0.0042", "$0.13", ""]);
        assert_eq!(count(1, "entry", "entries"), "1 entry");
        assert_eq!(count(0, "entry", "entries"), "0 entries");
    }
}
