//! Resident memory of a process.

/// What is resident now, in MB (of 1,000,000 bytes), as Linux tells it. `None` elsewhere, or when the process is gone.
pub fn resident(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parse(&status)
}

/// The line `VmRSS:     7392 kB`; its unit is 1,024 bytes.
fn parse(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1_024.0 / 1e6)
}

/// The system's load averages, where it tells them.
pub fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    Some(averages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_size_is_found() {
        assert_eq!(parse("Name:\tx\nVmHWM:\t 9000 kB\nVmRSS:\t    1000 kB\n"), Some(1.024));
        assert_eq!(parse("Name:\tzombie\n"), None);
    }
}
