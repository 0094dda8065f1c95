/// A task as it is kept over restarts; pure.
struct DiagnosisTask: Sendable, Hashable, Codable {
    /// What is left to do.
    enum Phase: Sendable, Hashable, Codable {
        /// To be collected. May go to any other.
        case waiting
        /// To be sent, so many parts have been taken. May go to `done`, `refused`, `deleted`, and back to `waiting`
        /// when the bundle is lost.
        case collected(DiagnosisBundle, taken: Int)
        /// The end.
        case done
        /// The end, once the server has been told; what it refused itself it knows.
        case refused(DiagnosisRefusal, isTold: Bool)
        /// The end; kept so that a command that comes again is known.
        case deleted
    }

    let command: DiagnosisCommand
    /// Rises with each task that begins.
    let order: Int64
    var phase: Phase

    /// Whether nothing is left to do.
    var hasEnded: Bool {
        switch phase {
        case .done, .deleted, .refused(_, isTold: true): true
        case .waiting, .collected, .refused: false
        }
    }

    /// What was collected, while it is needed.
    var bundle: DiagnosisBundle? {
        if case .collected(let bundle, _) = phase { bundle } else { nil }
    }

    /// What people are told.
    func status(on network: NetworkKind, isCollecting: Bool) -> DiagnosisStatus {
        switch phase {
        case .waiting: isCollecting ? .collecting : .waiting
        case .collected(let bundle, let taken):
            command.network.allows(network)
                ? .uploading(taken: taken, total: bundle.parts) : .waitingForNetwork(taken: taken, total: bundle.parts)
        case .done: .done
        case .refused(let reason, _): .refused(reason)
        case .deleted: .deleted
        }
    }
}
