//! The number of lists to ask for.

use selvedge_core::Ratio;

use super::share;

/// The z-score of a two-sided confidence level: the number of standard deviations around the
/// mean that hold this share of a normal distribution. 1.645 for 90%, 1.960 for 95%.
///
/// The thesis prints the level of the quantile, x + (1 - x) / 2, and calls it z (erratum Z1).
/// Accurate to about 14 digits; 8 and above for confidences closer to 1 than 10^-15. O(1).
#[must_use]
pub fn z_score(confidence: Ratio) -> f64 {
    let wanted = share(confidence);
    let (mut low, mut high) = (0.0, 9.0);
    // Bisection until no float lies in between.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if libm::erf(middle / core::f64::consts::SQRT_2) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns the number of lists to ask for, so that the share of lists that lack a node is known to
/// within `error` with this `confidence`, where it is about `missing`: p (1 - p) (z / E)^2, rounded
/// up.
/// With `nodes` in the mesh fewer are enough: n / (1 + (n - 1) / N).
///
/// The error is absolute: 1 in 20 of 1,000 nodes are 50 lists more or less. (The text of the thesis
/// has "within 20 (equivalent to 5% of 1000)", erratum Z1.) `None` when `error` is 0. O(1).
///
/// ```
/// use selvedge_celect::estimate::sample_size;
/// use selvedge_core::Ratio;
///
/// let percent = |it| Ratio::new(it, 100);
/// // Table 7.1 has 32, which gives a confidence of 66%.
/// assert_eq!(sample_size(percent(10), percent(5), percent(90), None), Some(98));
/// assert_eq!(sample_size(percent(10), percent(5), percent(90), Some(1_000)), Some(89));
/// ```
#[must_use]
pub fn sample_size(
    missing: Ratio,
    error: Ratio,
    confidence: Ratio,
    nodes: Option<u32>,
) -> Option<u32> {
    let (p, error) = (share(missing), share(error));
    if error == 0.0 {
        return None;
    }
    let z = z_score(confidence) / error;
    let endless = p * (1.0 - p) * z * z;
    let wanted = match nodes {
        // Not more lists than there are nodes.
        Some(nodes) if nodes > 0 && endless > 0.0 => {
            let nodes = f64::from(nodes);
            (endless / (1.0 + (endless - 1.0) / nodes)).min(nodes)
        }
        Some(_) | None => endless,
    };
    Some(libm::ceil(wanted) as u32)
}
