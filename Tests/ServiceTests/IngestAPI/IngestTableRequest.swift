import NIOHTTP1
import ServiceKit
import SyncModel

@testable import BackendCalls
@testable import IngestAPI

/// One call of the API that a table row changes: its text, and the state of the service.
struct IngestTableRequest {
    /// The state of the instance and the configuration in the stub directory.
    enum Presence: Sendable {
        case absent
        case off
        case on
    }

    let scope: PushScope
    var query = "?instanceId=w_app"
    /// The instances and Sync IDs that the service knows. It knows every name of a row, so that only the checked rule
    /// refuses it.
    var knownInstances = ["w_app"]
    var knownBizTypes = ["orders"]
    /// The body to send instead of an object with the members.
    var otherBody: String?
    /// The text before and after the members.
    var opening = "{"
    var closing = "}"
    /// The names of members that are sent one more time.
    var repeatedNames: [String] = []
    var instance = Presence.on
    var configuration = Presence.on
    var isOfOtherScope = false
    var outcome = PushOutcome.stored(OplogID(7), online: true)
    private var members: [(name: String, json: [UInt8])] = []

    /// Makes a call with the answer SUCCESS.
    init(_ scope: PushScope) {
        self.scope = scope
        set("bizType", text: "orders")
        if scope == .single { set("linkToken", text: "u1") }
        set("thirdMsgId", text: "t1")
        set("payload", text: "p")
    }

    /// Sets a parameter to a JSON string. Escapes NUL; the text must need no other escape.
    mutating func set(_ name: String, text: String) {
        set(name, json: "\"" + text.replacing("\0", with: "\\u0000") + "\"")
        if name == "bizType" { knownBizTypes.append(text) }
    }

    mutating func set(_ name: String, json: String) { set(name, bytes: Array(json.utf8)) }

    mutating func set(_ name: String, bytes: [UInt8]) {
        remove(name)
        members.append((name, bytes))
    }

    mutating func remove(_ name: String) { members.removeAll { $0.name == name } }

    var body: [UInt8] {
        if let otherBody { return Array(otherBody.utf8) }
        var fields = members
        for name in repeatedNames {
            let json = members.first { $0.name == name }?.json
            fields.append((name, json ?? Array("null".utf8)))
            if json == nil { fields.append((name, Array("null".utf8))) }
        }
        let texts = fields.map { Array("\"\($0.name)\":".utf8) + $0.json }
        return Array(opening.utf8) + Array(texts.joined(separator: Array(",".utf8))) + Array(closing.utf8)
    }

    /// Sends the call through head, query and intake, and returns the answer and the pushes that reached the store.
    func send() async -> (answer: HTTPAnswer, pushes: [PushRequest]) {
        let submission = StubSubmission(outcome)
        let (head, body) = (head, body)
        do throws(EarlyRefusal) {
            guard case .push(let scope) = try RequestRules.call(of: head) else {
                return (.refusal(.notFound, "This is no push."), [])
            }
            let answer = await PushIntake.stub(submission, directory: directory)
                .answer(scope: scope, instanceID: RequestQuery(head)["instanceId"], body: body)
            return (HTTPAnswer(answer), submission.pushes)
        } catch {
            return (error.answer, submission.pushes)
        }
    }

    private var head: HTTPRequestHead {
        HTTPRequestHead(
            version: .http1_1, method: .POST,
            uri: "/webapi/sync/" + (scope == .single ? "single" : "global") + query,
            headers: ["Content-Type": "application/json", "Content-Length": String(body.count)])
    }

    private var directory: StubDirectory {
        var directory = StubDirectory()
        directory.instances = [:]
        directory.configurations = [:]
        if instance != .absent {
            for id in knownInstances { directory.add(instance: id, isEnabled: instance == .on) }
        }
        if configuration != .absent {
            let kind: ChannelKind = (scope == .global) == isOfOtherScope ? .user : .globalUser
            for name in knownBizTypes { directory.add(name, kind, isOnline: configuration == .on) }
        }
        return directory
    }
}
