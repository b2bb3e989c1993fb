//! A colour for each routine.

/// The colour with this number: neighbours differ clearly, and white letters are readable on each.
pub(super) fn colour(nth: usize) -> String {
    // The golden angle puts each hue far from earlier ones; three shades double the distance.
    let hue = (nth as f64 * 137.508 + 250.0) % 360.0;
    let (light, chroma) = match nth % 3 {
        0 => (0.55, 0.14),
        1 => (0.50, 0.12),
        _ => (0.60, 0.11),
    };
    let (red, green, blue) = srgb(light, chroma, hue.to_radians());
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Converts from Oklch, in which colours of one lightness look equally light (B. Ottosson, 2020).
fn srgb(light: f64, chroma: f64, hue: f64) -> (u8, u8, u8) {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (light + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (light - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (light - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    (
        byte(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        byte(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        byte(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s),
    )
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255"
)]
fn byte(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let curved = if linear <= 0.003_130_8 {
        linear * 12.92
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    (curved * 255.0).round() as u8
}
