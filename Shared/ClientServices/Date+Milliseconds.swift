import Foundation

extension Date {
    /// Milliseconds since 1970; the nearest that there is for a time that is out of reach.
    var milliseconds: Int64 {
        let exact = (timeIntervalSince1970 * 1_000).rounded()
        // Also for what is no number at all.
        guard exact > Double(Int64.min) else { return .min }
        return exact < Double(Int64.max) ? Int64(exact) : .max
    }
}
