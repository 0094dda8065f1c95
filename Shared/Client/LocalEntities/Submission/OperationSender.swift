import Foundation
import MobileSync

/// Passes the pending operations to the submitter, in order.
final class OperationSender: Sendable {
    /// The user of the operations; nil: the bound user.
    let userID: String?
    private let transactions: TransactionRunner
    private let submitter: any OperationSubmitter
    private let clock: @Sendable () -> Date
    /// Only one task submits at a time, so that operations stay in order.
    private let lock = AsyncLock()

    init(
        transactions: TransactionRunner, submitter: any OperationSubmitter, userID: String?,
        clock: @escaping @Sendable () -> Date
    ) {
        self.userID = userID
        self.transactions = transactions
        self.submitter = submitter
        self.clock = clock
    }

    /// Whether the server has not replied about parameters of these types.
    func hasPendingParameters(of typeNames: Set<String>) throws(EntityError) -> Bool {
        do {
            return try submitter.hasPendingParameters(of: typeNames, ofUser: userID)
        } catch {
            throw EntityError(.submission, "the client's parameters cannot be read (\(error)); try again")
        }
    }

    /// Submits new operations and withdraws cancelled ones, in order.
    func send() async throws(EntityError) {
        try await lock.withLock { () throws(EntityError) in
            try await withdrawCancelled()
            try await sendUnsent()
        }
    }

    private func sendUnsent() async throws(EntityError) {
        while true {
            let operations = try transactions.read("reading unsent operations") { transaction in
                try transaction.operations.unsent(limit: EntityLimits.submissionsAtOnce)
            }
            guard !operations.isEmpty else { return }
            let fitting = operations.filter { $0.fault == nil }
            do {
                if !fitting.isEmpty { try await submitter.submit(fitting, ofUser: userID) }
            } catch {
                throw EntityError(
                    .submission,
                    "\(fitting.count) operations could not be submitted (\(error)); they are submitted again later")
            }
            try transactions.write("marking operations as sent") { transaction in
                try transaction.operations.markSent(fitting.map(\.id))
                for operation in operations {
                    guard let fault = operation.fault else { continue }
                    try transaction.step("applying a result") {
                        try transaction.results.apply(refusal(of: operation, fault))
                    }
                }
            }
        }
    }

    /// The local result of an operation that no server accepts, such as one that is too large.
    private func refusal(of operation: SyncOperation, _ fault: String) -> SyncOperationResult {
        SyncOperationResult(
            operationID: operation.id, component: operation.component, key: operation.key, name: operation.name,
            isAccepted: false, code: 400, level: LogLevel.error.rawValue, message: fault, requestID: "", at: clock(),
            imported: nil)
    }

    private func withdrawCancelled() async throws(EntityError) {
        let roots = try transactions.read("reading cancelled operations") { try $0.operations.cancelledRoots() }
        guard !roots.isEmpty else { return }
        let taken: [String]
        do {
            taken = try await submitter.cancelOperations(roots, ofUser: userID)
        } catch {
            throw EntityError(
                .submission, "\(roots.count) operations could not be withdrawn (\(error)); they are withdrawn later")
        }
        try transactions.write("storing withdrawn operations") { transaction in
            try transaction.operations.deleteAll(ofRoots: taken.filter(roots.contains))
            try transaction.operations.markUncancellable(roots)
        }
    }
}
