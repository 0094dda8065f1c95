import BusMessages
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// The relay's statements for device operations, on a database connection of its own. Each blocks its caller.
struct OperationDatabase {
    private static let limit = Duration.seconds(5)
    /// The time for which this process alone may push the results of answered operations.
    private static let pushLease = Duration.seconds(15)
    /// One statement claims the groups of at most so many operations whose results were not pushed in time.
    private static let unannouncedMax = 200
    /// The largest number of finished operations that one statement deletes.
    private static let forgottenMax = 5_000

    private let connection: PostgresConnection
    private let callLease: Duration
    /// The name of this process in its claims.
    private let claimer = RandomName.make()
    private var forgotAt: ContinuousClock.Instant?

    /// - Parameter callTimeout: the longest time that a call of a tenant takes.
    init(connection: PostgresConnection, callTimeout: Duration) {
        self.connection = connection
        // Longer than a call, so that a claim never expires during its call.
        callLease = callTimeout + .seconds(5)
    }

    /// Closes the connection.
    func close() { connection.close() }

    /// Claims operations that have their turn, to call their tenants.
    func claim(
        _ requests: [DeviceOperationStore.ClaimRequest]
    ) throws(PostgresError) -> [DeviceOperationStore.StoredOperation] {
        try connection.run(
            DeviceOperationStore.claim(requests, claimer: claimer, lease: callLease), within: Self.limit)
    }

    /// Claims answered operations whose results were not pushed in time.
    func claimUnannounced() throws(PostgresError) -> [DeviceOperationStore.StoredOperation] {
        try connection.run(
            DeviceOperationStore.claimUnannounced(claimer: claimer, lease: Self.pushLease, most: Self.unannouncedMax),
            within: Self.limit)
    }

    /// Stores answers, and claims the answered operations to push their results.
    ///
    /// - Returns: the numbers of the results to push, each with the time for the devices.
    func store(_ answers: [DeviceOperationStore.Answer]) throws(PostgresError) -> [Int64: WallTime] {
        try connection.run(
            DeviceOperationStore.answer(answers, at: .now, claimer: claimer, lease: Self.pushLease), within: Self.limit)
    }

    /// Finishes operations whose results were announced.
    ///
    /// - Returns: for each instance in which an operation reached the first place, the earliest time since which such
    ///   an operation waits.
    func finish(
        _ announced: [DeviceOperationStore.AnnouncedOperation]
    ) throws(PostgresError) -> [InstanceID: WallTime] {
        try connection.run(DeviceOperationStore.finish(announced), within: Self.limit)
    }

    /// Stores a part of a device log, or a refusal. No tenant is called.
    func storeDiagnosis(_ stored: DeviceOperationStore.StoredOperation) -> CallOutcome {
        var operation = stored.operation
        operation.children = DeviceOperation.children(stored: stored.children)
        let (instanceID, deviceID) = (stored.instanceID, stored.deviceID)
        do {
            switch try DiagnosisUpload(operation) {
            case .part(let part):
                let (code, message) = try connection.run(
                    DiagnosisStore.store(part, of: instanceID, from: deviceID, stored.userID), within: Self.limit)
                return code == 200
                    ? .accepted(message: "", imported: nil) : .refused(code: code, message: message)
            case .refusal(let taskID, let run, let reason):
                try connection.run(
                    DiagnosisStore.refuse(
                        taskID, run: run, reason: reason, of: instanceID, from: deviceID, stored.userID),
                    within: Self.limit)
                return .accepted(message: "", imported: nil)
            }
        } catch let fault as DiagnosisUpload.Fault {
            return .refused(code: 400, message: fault.reason)
        } catch {
            return .again(code: 0, reason: "a part of a log was not stored: \(error)", named: nil, isAnswer: true)
        }
    }

    /// Deletes finished operations and old tasks of device logs, every ten minutes. A failed deletion is repeated after
    /// the usual pause.
    mutating func forget() throws(PostgresError) {
        let isDue = forgotAt.map { $0.duration(to: .now) >= .seconds(600) } ?? true
        guard isDue else { return }
        forgotAt = .now
        let forgotten = try connection.run(
            DeviceOperationStore.forget(most: Self.forgottenMax), within: .seconds(10))
        _ = try connection.run(DiagnosisStore.forget(most: Limits.diagnosisTasks), within: .seconds(10))
        // If more remain, the next tick continues.
        if forgotten == Self.forgottenMax { forgotAt = nil }
    }
}
