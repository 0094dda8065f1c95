/// The action of an operator in an audit record (C9). Codes are stored forever: never change or reuse one.
package enum OperationAction: Int16, Hashable, Sendable, CaseIterable {
    case createConfiguration = 1
    case modifyConfiguration = 2
    case deleteConfiguration = 3
    /// Set online.
    case publishConfiguration = 4
    /// Set offline.
    case disableConfiguration = 5
    /// One push by an operator.
    case createSync = 10
    case recall = 11
    case replay = 12
    case revokeSessions = 13
    case createInstance = 20
    case modifyInstance = 21
    case enableInstance = 22
    case disableInstance = 23
    case enableSignature = 24
    case disableSignature = 25
    case createKey = 30
    case revokeKey = 31
    case resealKey = 32
    case releaseDevice = 40
    case disconnectDevice = 41
    case createUser = 50
    case modifyUser = 51
    case removeUser = 52
    case changePassword = 53
    case signIn = 54
    case failedSignIn = 55
    case signOut = 56
    case inviteUser = 57
    /// A wrong password or code when the console asked for it again.
    case failedConfirmation = 58
    case startRollout = 60
    case widenRollout = 61
    case pauseRollout = 62
    case resumeRollout = 63
    case stopRollout = 64
    /// Retry of a dead device operation.
    case retryOperation = 70
    /// Request for a device's log.
    case createDiagnosis = 80
    case restartDiagnosis = 81
    case deleteDiagnosis = 82
    /// Download of the log.
    case downloadDiagnosis = 83

    /// The action in commands, in exports and in the API.
    package var word: String {
        switch self {
        case .createConfiguration: "create-configuration"
        case .modifyConfiguration: "modify-configuration"
        case .deleteConfiguration: "delete-configuration"
        case .publishConfiguration: "publish"
        case .disableConfiguration: "disable"
        case .createSync: "create-sync"
        case .recall: "recall"
        case .replay: "replay"
        case .revokeSessions: "revoke-sessions"
        case .createInstance: "create-instance"
        case .modifyInstance: "modify-instance"
        case .enableInstance: "enable-instance"
        case .disableInstance: "disable-instance"
        case .enableSignature: "enable-signature"
        case .disableSignature: "disable-signature"
        case .createKey: "create-key"
        case .revokeKey: "revoke-key"
        case .resealKey: "reseal-key"
        case .releaseDevice: "release-device"
        case .disconnectDevice: "disconnect-device"
        case .createUser: "create-user"
        case .modifyUser: "modify-user"
        case .removeUser: "remove-user"
        case .changePassword: "change-password"
        case .signIn: "sign-in"
        case .failedSignIn: "failed-sign-in"
        case .signOut: "sign-out"
        case .inviteUser: "invite-user"
        case .failedConfirmation: "failed-confirmation"
        case .startRollout: "start-rollout"
        case .widenRollout: "widen-rollout"
        case .pauseRollout: "pause-rollout"
        case .resumeRollout: "resume-rollout"
        case .stopRollout: "stop-rollout"
        case .retryOperation: "retry-operation"
        case .createDiagnosis: "create-diagnosis"
        case .restartDiagnosis: "restart-diagnosis"
        case .deleteDiagnosis: "delete-diagnosis"
        case .downloadDiagnosis: "download-diagnosis"
        }
    }

    /// The action with this word; nil for an unknown word.
    package init?(word: String) {
        guard let action = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = action
    }
}
