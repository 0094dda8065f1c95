import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

// Revocation of user sessions for a tenant (H7).
extension OperationIntake {
    /// Ends sessions. After the response, checked data is sent on such a session only if the session connects or binds
    /// again and the tenant then says valid.
    package func revoke(instanceID: String?, body: [UInt8]) async -> APIAnswer {
        guard directory.isLoaded else { return Self.starting }
        let sessions: Mss_Bus_V1_RevokeSessions
        do throws(PushRefusal) {
            sessions = try await revocation(instanceID: instanceID, body: body)
        } catch {
            return error.answer
        }
        do throws(BusError) {
            let reply = try await ask { $0.revokeSessions = sessions }
            guard case .revoke(let revoke)? = reply.body, !revoke.uncertain else { return Self.revokeUnknown }
            return .result(.success, detail: "Earlier verdicts on these sessions do not count any more.")
        } catch {
            return error.code == .unavailable ? Self.storeAway : Self.revokeUnknown
        }
    }

    private func revocation(
        instanceID: String?, body: [UInt8]
    ) async throws(PushRefusal) -> Mss_Bus_V1_RevokeSessions {
        let text = try Self.textMembers(of: body)
        let instance = try Self.checked(instanceID, "instanceId")
        let user = try Self.checked(try text("userId"), "userId")
        let session = try text("sessionId")
        var controlData = CallControlData(directory, instanceID: InstanceID(instance))
        try await controlData.apply { () throws(PushRefusal) in
            try requireInstance(InstanceID(instance))
        }
        guard user.utf16.count <= Limits.linkTokenUnits else {
            throw PushRefusal(.argsIsNull, "userId is longer than any user's; check it.")
        }
        // An empty sessionId may be a mistake, and would end every session of the user.
        guard session != "", session?.utf16.count ?? 0 <= Limits.longestSessionUnits else {
            throw PushRefusal(
                .argsIsNull, "sessionId is empty or longer than any session's; leave it out to end all of the user's.")
        }
        return .with {
            $0.instanceID = instance
            $0.userID = user
            if let session { $0.sessionDigest = Data(SessionDigest.of(session)) }
        }
    }

    private static let revokeUnknown = APIAnswer.result(
        .systemError, detail: "It is not known whether every gateway has applied the revocation; repeat the call.")
}
