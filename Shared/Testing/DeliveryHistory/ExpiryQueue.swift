/// Pushes whose validity ends in the future.
struct ExpiryQueue: Sendable {
    /// In descending order of their ends.
    private var ends: [(at: Duration, push: String)] = []

    /// Names of the pushes.
    var pushes: [String] { ends.map(\.push) }

    mutating func insert(_ push: String, endingAt time: Duration) {
        var (place, upper) = (0, ends.count)
        while place < upper {
            let middle = (place + upper) / 2
            if ends[middle].at > time { place = middle + 1 } else { upper = middle }
        }
        ends.insert((time, push), at: place)
    }

    /// Removes the push whose validity ends first.
    ///
    /// - Returns: nil if no validity has ended by this time.
    mutating func removeFirst(endedBy time: Duration) -> String? {
        guard let next = ends.last, next.at <= time else { return nil }
        return ends.removeLast().push
    }
}
