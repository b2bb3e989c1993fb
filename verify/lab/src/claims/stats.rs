//! Means, medians and their errors.

/// The mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation; `None` without values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() as f64 - 1.0).max(1.0)).sqrt())
}

/// The value below which this share of all values lies; `None` without values.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
}

/// The same of values in order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    // Between neighbours in proportion.
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted.get(below)?, sorted.get((below + 1).min(last))?);
    Some(low + (high - low) * place.fract())
}

/// The median; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// A figure, and the standard error of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

/// The percentage by which the mean of `ours` lies below the mean of `base`. Both are of the same
/// trials, in the same order; the error is the error of a ratio of paired means.
pub(crate) fn cut(base: &[f64], ours: &[f64]) -> Option<Estimate> {
    let count = base.len().min(ours.len());
    let (base, ours) = (base.get(..count)?, ours.get(..count)?);
    let (old, new) = (mean(base)?, mean(ours)?);
    if old == 0.0 {
        return None;
    }
    let ratio = new / old;
    let squares: f64 = base
        .iter()
        .zip(ours)
        .map(|(base, ours)| (ours - ratio * base).powi(2))
        .sum();
    let pairs = count as f64 * (count as f64 - 1.0).max(1.0);
    Some(Estimate {
        value: 100.0 * (1.0 - ratio),
        error: 100.0 * (squares / pairs).sqrt() / old,
    })
}

/// The same for a high quantile instead of the mean. The error is from the spread between ten
/// groups of trials.
pub(crate) fn tail_cut(base: &[f64], ours: &[f64], share: f64) -> Option<Estimate> {
    const GROUPS: usize = 10;
    let cut = |base: &[f64], ours: &[f64]| {
        let ratio = quantile(ours, share)? / quantile(base, share)?;
        Some(100.0 * (1.0 - ratio))
    };
    let group = |values: &[f64], nth: usize| -> Vec<f64> {
        values.iter().skip(nth).step_by(GROUPS).copied().collect()
    };
    let cuts: Vec<f64> = (0..GROUPS)
        .filter_map(|nth| cut(&group(base, nth), &group(ours, nth)))
        .collect();
    Some(Estimate {
        value: cut(base, ours)?,
        error: deviation(&cuts)? / (cuts.len() as f64).sqrt(),
    })
}

/// The slope and the intercept of the line that fits best.
pub(crate) fn fit(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let xs: Vec<f64> = points.iter().map(|it| it.0).collect();
    let ys: Vec<f64> = points.iter().map(|it| it.1).collect();
    let (x, y) = (mean(&xs)?, mean(&ys)?);
    let spread: f64 = xs.iter().map(|it| (it - x).powi(2)).sum();
    if spread == 0.0 {
        return None;
    }
    let together: f64 = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let slope = together / spread;
    Some((slope, y - slope * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), Some(2.5));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!((median(&[]), mean(&[]), deviation(&[])), (None, None, None));
        assert!(deviation(&values).is_some_and(|it| (it - 1.29).abs() < 0.01));
    }

    #[test]
    fn a_cut_of_a_third_is_found_with_its_error() {
        let base = [30.0, 60.0, 90.0];
        let exact = cut(&base, &[20.0, 40.0, 60.0]);
        assert!(exact.is_some_and(|it| (it.value - 100.0 / 3.0).abs() < 1e-9 && it.error < 1e-9));
        let rough = cut(&base, &[10.0, 50.0, 60.0]);
        assert!(rough.is_some_and(|it| (it.value - 100.0 / 3.0).abs() < 1e-9 && it.error > 5.0));
        assert_eq!(cut(&[], &[]), None);
    }

    #[test]
    fn a_cut_of_the_tail_is_found_with_its_error() {
        let base: Vec<f64> = (0..100).map(f64::from).collect();
        let ours: Vec<f64> = base.iter().map(|value| value / 2.0).collect();
        let found = tail_cut(&base, &ours, 0.95);
        assert!(found.is_some_and(|it| (it.value - 50.0).abs() < 1e-9 && it.error < 1e-9));
        assert_eq!(tail_cut(&[], &[], 0.95), None);
    }

    #[test]
    fn a_line_is_found() {
        let found = fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!(
            found.is_some_and(
                |(slope, at_0)| (slope - 2.0).abs() < 1e-9 && (at_0 - 1.0).abs() < 1e-9
            )
        );
        assert_eq!(fit(&[(1.0, 1.0)]), None);
    }
}
