/// The progress of the backlog on a connection. Reports each step to the app. Not thread-safe.
struct SyncProgress {
    private enum Phase {
        /// There is no connection.
        case idle
        /// The synchronisation has begun, and no data has arrived.
        case begun
        /// Data arrives.
        case downloading
        /// The backlog is stored.
        case done
    }

    private var phase = Phase.idle
    private let sharedState: ClientSharedState
    private let onSynchronize: (@Sendable (SyncStep) -> SyncDecision)?

    init(sharedState: ClientSharedState, onSynchronize: (@Sendable (SyncStep) -> SyncDecision)?) {
        self.sharedState = sharedState
        self.onSynchronize = onSynchronize
    }

    /// Whether a synchronisation has begun, and no data has arrived.
    var hasNoData: Bool { phase == .begun }
    /// Whether a synchronisation has begun and is not complete.
    var isIncomplete: Bool { phase != .idle && phase != .done }

    /// Begins a step and reports it. A cancelled synchronisation forbids connections until the app allows them.
    ///
    /// - Returns: the decision of the app.
    mutating func advance(to step: SyncStep) -> SyncDecision {
        switch step {
        case .starting: (phase, sharedState.isCaughtUp) = (.begun, false)
        case .downloading: phase = .downloading
        case .finishing: phase = .done
        case .uploading, .error: break
        }
        guard onSynchronize?(step) == .cancel else { return .proceed }
        sharedState.setWanted(false)
        return .cancel
    }

    /// Ends the synchronisation with its connection.
    mutating func end() {
        phase = .idle
        sharedState.isCaughtUp = false
    }
}
