/// The filters of one receiver of a channel, with the oplogs for which each one decided; pure.
///
/// A segment ends where its filter was replaced. In the normal flow, the filter that was in force when an oplog was
/// appended decides. A new filter also lets older oplogs through; these are sent as re-reads (D3). So all oplogs up to
/// a segment's end that match its filter are sent, or will be.
package struct FilterHistory: Hashable, Sendable {
    /// One filter and its range of oplogs.
    package struct Segment: Hashable, Sendable {
        /// Rises from segment to segment.
        package var number: Int
        package var filter: ResolvedFilter
        /// The last oplog for which it decides; nil: it is in force.
        package var upto: OplogID?

        package init(number: Int, filter: ResolvedFilter, upto: OplogID?) {
            self.number = number
            self.filter = filter
            self.upto = upto
        }
    }

    /// In rising order. Only the last one can be in force.
    package private(set) var segments: [Segment]

    package init(segments: [Segment] = []) { self.segments = segments }

    /// The filter in force.
    package var current: ResolvedFilter? { segments.last.flatMap { $0.upto == nil ? $0.filter : nil } }

    /// The result of a change.
    package enum Change: Hashable, Sendable {
        case none
        /// Another filter is in force. The caller must look for older oplogs that it lets through.
        case made
        /// The receiver already has `Limits.filterSegments` filters in its history. The last one stays in force.
        case refused
    }

    /// Puts a filter in force for all oplogs after the head.
    ///
    /// - Parameters:
    ///   - isKnown: the receiver was served before. Without segments, it had no filter.
    ///   - stored: the receiver's sync point.
    ///   - oldest: the oldest oplog in retention; nil: none.
    package mutating func adopt(
        _ filter: ResolvedFilter, head: OplogID, isKnown: Bool, stored: OplogID, oldest: OplogID?
    ) -> Change {
        if segments.isEmpty {
            guard isKnown else {
                segments = [Segment(number: 1, filter: filter, upto: nil)]
                return .none
            }
            segments = [Segment(number: 1, filter: .everything, upto: nil)]
        }
        guard current != filter else { return .none }
        dropDecided(stored: stored, oldest: oldest, head: head)
        guard segments.count < Limits.filterSegments else { return .refused }
        segments[segments.count - 1].upto = segments[segments.count - 1].upto ?? head
        segments.append(Segment(number: segments[segments.count - 1].number + 1, filter: filter, upto: nil))
        return .made
    }

    /// Removes segments that decide nothing any more: all their oplogs are past retention, or a later segment has the
    /// same filter; and the receiver has stored all their oplogs.
    private mutating func dropDecided(stored: OplogID, oldest: OplogID?, head: OplogID) {
        var last: Set<ResolvedFilter> = []
        var kept: [Segment] = []
        for segment in segments.reversed() {
            let end = segment.upto ?? head
            let isGone = segment.upto != nil && (oldest.map { end < $0 } ?? true) && end <= stored
            let isRepeated = last.contains(segment.filter) && end <= stored
            if !isGone, !isRepeated { kept.append(segment) }
            last.insert(segment.filter)
        }
        segments = kept.reversed()
    }

    /// Whether an oplog from before the last change was sent to the receiver, or will be.
    package func isDelivered(_ id: OplogID, attributes: String) -> Bool {
        segments.contains { segment in
            segment.upto.map { id <= $0 } ?? false && segment.filter.matches(attributes: attributes)
        }
    }

    /// Whether the normal flow sends an oplog. The first segment that reaches the oplog decides; without segments, all
    /// are sent.
    package func flows(_ id: OplogID, attributes: String) -> Bool {
        let segment = segments.first { segment in segment.upto.map { id <= $0 } ?? true }
        return segment?.filter.matches(attributes: attributes) ?? true
    }

    /// The segments that decide for oplogs above a position.
    package func flowing(above position: OplogID) -> FilterHistory {
        FilterHistory(segments: segments.filter { $0.upto.map { position < $0 } ?? true })
    }
}
