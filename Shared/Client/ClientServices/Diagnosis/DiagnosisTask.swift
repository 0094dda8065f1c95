/// A diagnosis task as stored; a pure value.
struct DiagnosisTask: Sendable, Hashable, Codable {
    /// The progress of the task. The coded names are stored.
    enum Phase: Sendable, Hashable, Codable {
        /// The log is not collected yet. Every other phase can follow.
        case waiting
        /// The log is collected, and `taken` parts are uploaded. `done`, `refused` and `deleted` can follow, and
        /// `waiting` when the bundle is lost.
        case collected(DiagnosisBundle, taken: Int)
        /// All parts are uploaded. Final.
        case done
        /// The device uploads nothing. Final once the server knows it: `isTold` is true after the report, and for a
        /// refusal by the server.
        case refused(DiagnosisRefusal, isTold: Bool)
        /// The operator has deleted the task. Final; stored so that a repeated command is recognized.
        case deleted
    }

    let command: DiagnosisCommand
    /// The number of the task in the order of the commands.
    let order: Int64
    var phase: Phase

    /// Whether the task needs no more work.
    var hasEnded: Bool {
        switch phase {
        case .done, .deleted, .refused(_, isTold: true): true
        case .waiting, .collected, .refused: false
        }
    }

    /// The collected log while it is needed.
    var bundle: DiagnosisBundle? {
        if case .collected(let bundle, _) = phase { bundle } else { nil }
    }

    /// The progress to show in the app.
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
