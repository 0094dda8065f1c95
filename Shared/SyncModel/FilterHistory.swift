/// What one receiver of a channel is sent, and was sent, by which filter; pure.
///
/// A segment ends where its filter was replaced: in the normal flow an oplog goes by the filter that was in force when
/// it was appended. What a replacing filter lets through of what was there already comes as a re-read (spec D3), so the
/// oplogs up to a segment's end that pass its filter are delivered, or promised.
package struct FilterHistory: Hashable, Sendable {
    /// One filter and how far it goes.
    package struct Segment: Hashable, Sendable {
        /// Rises from segment to segment.
        package var number: Int
        package var filter: ResolvedFilter
        /// The newest oplog that it decided about; nil: it is in force.
        package var upto: OplogID?

        package init(number: Int, filter: ResolvedFilter, upto: OplogID?) {
            self.number = number
            self.filter = filter
            self.upto = upto
        }
    }

    /// In rising order; only the last one may be in force.
    package private(set) var segments: [Segment]

    package init(segments: [Segment] = []) { self.segments = segments }

    /// The filter in force.
    package var current: ResolvedFilter? { segments.last.flatMap { $0.upto == nil ? $0.filter : nil } }

    /// What a change did.
    package enum Change: Hashable, Sendable {
        case none
        /// Another filter is in force: look for what it lets through below.
        case made
        /// The receiver has had `Limits.filterSegments` filters within what is kept: the last one stays in force.
        case refused
    }

    /// Puts a filter in force for what comes behind the head.
    ///
    /// - Parameters:
    ///   - isKnown: the receiver was served before, without a filter where there is no segment.
    ///   - stored: the receiver's sync point.
    ///   - oldest: the oldest oplog that is kept; nil: none is.
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
        forget(stored: stored, oldest: oldest, head: head)
        guard segments.count < Limits.filterSegments else { return .refused }
        segments[segments.count - 1].upto = segments[segments.count - 1].upto ?? head
        segments.append(Segment(number: segments[segments.count - 1].number + 1, filter: filter, upto: nil))
        return .made
    }

    /// Drops what decides nothing any more: nothing is kept of what it was about, or a later segment of the same filter
    /// says as much and the receiver has stored what the flow is to bring by it.
    private mutating func forget(stored: OplogID, oldest: OplogID?, head: OplogID) {
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

    /// Whether the receiver has, or is being sent, an oplog that was there when the last change was made.
    package func isDelivered(_ id: OplogID, attributes: String) -> Bool {
        segments.contains { segment in
            segment.upto.map { id <= $0 } ?? false && segment.filter.matches(attributes: attributes)
        }
    }

    /// Whether the flow brings an oplog: the first segment that reaches so far decides. Without any all do.
    package func flows(_ id: OplogID, attributes: String) -> Bool {
        let segment = segments.first { segment in segment.upto.map { id <= $0 } ?? true }
        return segment?.filter.matches(attributes: attributes) ?? true
    }

    /// Only what the flow above a position goes by.
    package func flowing(above position: OplogID) -> FilterHistory {
        FilterHistory(segments: segments.filter { $0.upto.map { position < $0 } ?? true })
    }
}
