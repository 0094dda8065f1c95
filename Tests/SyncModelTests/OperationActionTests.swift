import SyncModel
import Testing

@Suite("Actions of audit records")
struct OperationActionTests {
    @Test("C9: codes and names of actions in records and exports never change")
    func codes() {
        let expected: [Int16: String] = [
            1: "create-configuration", 2: "modify-configuration", 3: "delete-configuration", 4: "publish",
            5: "disable", 10: "create-sync", 11: "recall", 12: "replay", 13: "revoke-sessions",
            20: "create-instance", 21: "modify-instance", 22: "enable-instance", 23: "disable-instance",
            24: "enable-signature", 25: "disable-signature", 30: "create-key", 31: "revoke-key", 32: "reseal-key",
            40: "release-device", 41: "disconnect-device", 50: "create-user", 51: "modify-user", 52: "remove-user",
            53: "change-password", 54: "sign-in", 55: "failed-sign-in", 56: "sign-out", 57: "invite-user",
            58: "failed-confirmation",
            60: "start-rollout",
            61: "widen-rollout", 62: "pause-rollout", 63: "resume-rollout", 64: "stop-rollout",
            70: "retry-operation",
            80: "create-diagnosis", 81: "restart-diagnosis", 82: "delete-diagnosis", 83: "download-diagnosis",
        ]
        let actual = OperationAction.allCases.map { ($0.rawValue, $0.word) }
        #expect(Dictionary(uniqueKeysWithValues: actual) == expected)
        for action in OperationAction.allCases { #expect(OperationAction(word: action.word) == action) }
        #expect(OperationAction(word: "action-4") == nil)
    }

    @Test("C9: operators are persons at the console and the command line, not the API")
    func people() {
        let people: [OperationActor] = ["console:alice", "mssctl:root"]
        let others: [OperationActor] = ["api", "", "console"]
        #expect(people.allSatisfy(\.isPerson) && !others.contains(where: \.isPerson))
    }
}
