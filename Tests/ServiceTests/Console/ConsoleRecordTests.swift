import Foundation
import SyncModel
import TestSupport
import Testing

@testable import BackendCalls
@testable import Console

@Suite("Console: audit records as text") struct ConsoleRecordTests {
    private func detail(
        _ action: OperationAction, before: String? = nil, after: String? = nil, _ language: Language = .english
    ) -> RecordDetail {
        let record = OperationRecord(
            number: 1, recordedAtMicroseconds: 0, actor: "console:a", source: "192.0.2.1", actionCode: action.rawValue,
            instanceID: InstanceID("i"), subject: "s", before: before, after: after, previousHash: [], hash: [])
        return RecordDetail(record, .of(language))
    }

    private func values(_ detail: RecordDetail) -> [String: String] {
        Dictionary(uniqueKeysWithValues: detail.groups.flatMap(\.lines).map { ($0.name, $0.value) })
    }

    private static let old = """
        {"instanceId":"i","bizType":"A","description":"old","scope":"appointed","target":"user","multiDevice":true,\
        "persistent":true,"repush":100,"checkSession":false,"verdictLifetimeSeconds":null,"immediate":false,\
        "online":true,"revision":1}
        """
    private static let new = old.replacing("old", with: "new").replacing(
        "\"checkSession\":false", with: "\"checkSession\":true"
    )
    .replacing(":null", with: ":60")

    @Test("C9: a configuration has the guide's four groups; a change shows the old value next to the new one")
    func configurations() {
        let groups = detail(.modifyConfiguration, before: Self.old, after: Self.new).groups
        #expect(groups.map(\.name) == ["Basic", "Target", "Persistence", "Security"])
        let lines = groups.flatMap(\.lines)
        let changed = lines.filter(\.isChanged)
        #expect(changed.map(\.name) == ["Description", "User consistency", "Verdict lifetime"])
        #expect(changed.map(\.was) == ["old", "No", "the instance's value"])
        #expect(changed.map(\.value) == ["new", "Yes", "60 s"])
        #expect(groups[1].lines.map(\.value) == ["User", "Yes"])
        #expect(groups[2].lines.map(\.value) == ["Yes", "Threshold", "100"])
        let deleted = detail(.deleteConfiguration, before: Self.old).groups
        #expect(deleted.map(\.name) == groups.map(\.name))
        #expect(deleted.flatMap(\.lines).allSatisfy { !$0.isChanged } && deleted[0].lines[1].value == "old")
        let all = Self.old.replacing("\"repush\":100", with: "\"repush\":\"all\"")
        #expect(detail(.createConfiguration, after: all, .chinese).groups[2].lines.map(\.value) == ["是", "全部"])
    }

    @Test("C9: the record of a push has its target, systems, versions and validity")
    func pushes() {
        let least = detail(.createSync, after: #"{"target":"u1","thirdMsgId":"m1","payloadSha256":"00"}"#)
        #expect(
            values(least) == [
                "Target id": "u1", "Unique data id": "m1", "System": "every system", "Version from": "no limit",
                "Version to": "no limit", "Valid until": "the instance's retention",
                "Conversation": "none", "SHA-256 of the content": "00",
            ])
        let dated = detail(.createSync, after: #"{"thirdMsgId":"m1","validTimeEnd":1767225600000}"#, .chinese)
        #expect(dated.groups[0].lines.first { $0.name == "有效期至" }?.at == 1_767_225_600_000)
        #expect(!dated.groups[0].lines.contains { $0.name == "推送对象 ID" }, "a global push has none")
        #expect(least.groups[0].lines[0].name == "Target id")
    }

    @Test("C9: a signature covers the record itself; all other members also have a text")
    func others() {
        #expect(detail(.enableSignature, before: #"{"requireSignature":false}"#, after: "{}").groups.isEmpty)
        #expect(detail(.signIn).groups.isEmpty)
        #expect(detail(.createInstance, after: "no JSON").groups.isEmpty)
        let account = detail(.createUser, after: #"{"enabled":true,"name":"v","roles":{"":"viewer","i":"operator"}}"#)
        #expect(values(account)["Roles"] == "Every instance and the service: Viewer, i: Operator")
        #expect(values(account)["Enabled"] == "Yes")
        let key = detail(.createKey, after: #"{"keyId":"k","purpose":"backend","requestsPerSecond":null}"#, .chinese)
        #expect(values(key) == ["密钥 ID": "k", "用途": "后端调用", "每秒调用数": "不限"])
        let form = detail(.modifyInstance, before: #"{"validatorMode":"http"}"#, after: #"{"validatorMode":"mgs"}"#)
        #expect(form.groups[0].lines[0].value == "mPaaS mobile gateway" && form.groups[0].lines[0].was == "HTTP, JSON")
    }

    @Test("C9: every member of a record has a text in the console")
    func members() throws {
        let folder = ProjectFolder.url.appending(path: "Shared/Server/SyncStore/Functions")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let sql = try files.filter { $0.pathExtension == "sql" }.map { try String(contentsOf: $0, encoding: .utf8) }
            .joined(separator: "\n")
        // The words in an array are values, not names.
        let written = sql.replacing(#/ARRAY\[[^\]]*\]/#, with: "").split(separator: "jsonb_build_object(").dropFirst()
            .flatMap { part in
                part.prefix { $0 != ";" }.matches(of: #/'([a-zA-Z0-9]+)', /#).map { String($0.output.1) }
            }
        #expect(written.count > 60)
        let words = RecordWords(isConfiguration: true, words: .of(.chinese))
        for member in written + ["roles", "sessionDigest", "osType", "thirdMsgId", "threshold"]
        where !(["revision"] + AppKey.Purpose.allCases.map(\.word)).contains(member) {
            #expect(words.name(of: member) != member, "\(member)")
        }
    }

    @Test("H7: a trace shows the time of storing between hand-out and confirmation, and no unknown time")
    func timeline() {
        let at = WallTime(milliseconds: 1_000)
        func way(_ state: DeliveryState) -> [TraceRoutes.Moment] {
            let receiver = TraceAnswer.Receiver(
                deviceID: "d", state: state, isConnected: true, at: at, handedOutAt: at, attempts: 1,
                syncPoint: OplogID(1), confirmedAt: state == .delivered ? at : nil)
            var trace = TraceAnswer(isDryRun: false, state: state)
            trace.acceptedAt = at
            return TraceRoutes.timeline(of: receiver, in: trace, .of(.english))
        }
        #expect(
            way(.delivered).map(\.detail) == [
                "Accepted and stored", "Handed out to the device", "Stored on the device", "Confirmed by the app",
            ])
        #expect(way(.delivered).map(\.at) == [1_000, 1_000, nil, 1_000])
        #expect(way(.stored).last?.at == nil && way(.stored).last?.isBlock == false)
        #expect(way(.dead).last?.at == 1_000 && way(.dead).last?.isBlock == true)
    }
}
