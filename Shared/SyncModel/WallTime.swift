/// A point of civil time in whole milliseconds since 1970; used for validity and display, never for leases.
package struct WallTime: Hashable, Comparable, Sendable {
    package let milliseconds: Int64
    package init(milliseconds: Int64) { self.milliseconds = milliseconds }
    package static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }
    package static func + (time: WallTime, duration: Duration) -> WallTime {
        WallTime(milliseconds: time.milliseconds + duration.wholeMilliseconds)
    }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    package var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
