fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    for s in selvedge_camera::check::scenarios() {
        if !s.name().contains(&only) { continue; }
        let t = std::time::Instant::now();
        let limits = selvedge_sim::check::Limits { states: 12_000_000, ..Default::default() };
        let r = s.run(&limits, &mut |_| core::ops::ControlFlow::Continue(()));
        let shown = r.iter().find(|r| matches!(r.outcome, selvedge_sim::check::Outcome::Breaks{..})).or(r.first());
        if let Some(r) = shown {
            println!("{:?} {} | {} | {} states, {} steps, {:?}, expected {:?}, {} s", s.rules(), s.name(), r.property, r.states, r.steps, r.outcome_name(), s.expected(), t.elapsed().as_secs_f32());
            if !only.is_empty() || (!r.as_expected() && r.outcome_name() != "holds" ) { println!("{r}"); }
        }
    }
}
