import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Instances, and the service management of one: signature, keys, session check, limits (spec C8, C12, C13).
struct InstanceArea: Sendable {
    let desk: ControlDesk
    /// Where devices reach a gateway, for `meta.config`.
    let devices: DeviceAddress

    /// The list, of those that the account may see.
    struct List: Encodable, Sendable {
        let instances: [InstanceItem]

        // For pages alone.
        let isEmpty: Bool
        let mayCreate: Bool
        /// Where one comes back to who has noted a secret.
        let here = "/instances"
        let verdictLifetimeSeconds = 600

        private enum CodingKeys: String, CodingKey { case instances }
    }

    /// The service management of one.
    struct Page: Sendable {
        let instance: InstanceItem
        let mayChange: Bool
        let metaConfig: String
        let deviceKeys: [InstanceItem.Key]
        /// Where one comes back to who has noted a secret.
        let here: String
    }

    private struct KeyInput: Decodable {
        let purpose: String
        let secret: String?
        let requestsPerSecond: Int?
        let pushesPerDay: Int?
    }

    /// A key with its secret, shown this once.
    struct CreatedKey: Encodable {
        let id: String
        let purpose: String
        let secret: String?
        /// Of a device key: the `meta.config` with the key and its secret.
        let metaConfig: String?
    }

    /// A new instance, and its app key where one was asked for.
    struct Created: Encodable {
        let instance: InstanceItem
        let key: CreatedKey?

        private enum CodingKeys: String, CodingKey { case key }

        func encode(to encoder: any Encoder) throws {
            try instance.encode(to: encoder)
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encodeIfPresent(key, forKey: .key)
        }
    }

    private struct CheckInput: Decodable {
        let userId: String
        let sessionId: String
    }

    /// What the tenant said to a trial question.
    struct CheckAnswer: Encodable {
        let verdict: String
        let reason: String
        let milliseconds: Int64
        let detail: String
    }

    var routes: [Route] { reading + changing + keys + [check] }

    private static let one = "/api/v1/instances/{instance}"

    private var reading: [Route] {
        [
            Route(method: .get, pattern: RoutePattern("/"), access: .signedIn, summary: "The start page.") {
                exchange throws(ConsoleFault) in
                let seen = try list(exchange).instances
                // An instance is chosen first (spec C1): the last one, or the only one there is.
                let chosen = exchange.chosenInstance(in: desk.directory)?.id.text
                let page = seen.first { $0.instanceId == chosen || seen.count == 1 }?.page
                return .redirect(to: page ?? "/instances")
            },
            Route(method: .get, pattern: RoutePattern("/instances"), access: .signedIn, summary: "Instances.") {
                exchange throws(ConsoleFault) in
                .page(PageContent(template: "instances", title: "title.instances", content: try list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances"), access: .signedIn,
                summary: "The instances at which the account has a role.", example: AnswerExamples.instances
            ) { exchange throws(ConsoleFault) in .json(try list(exchange)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/service"), access: .instance(.viewer),
                summary: "Service management."
            ) { exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "service", title: "tab.service", tab: .service, instanceID: exchange.instanceID,
                        content: try page(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern(Self.one), access: .instance(.viewer),
                summary: "An instance, its settings and its live keys without their secrets.",
                example: AnswerExamples.instance
            ) { exchange throws(ConsoleFault) in try item(exchange) },
            Route(
                method: .get, pattern: RoutePattern(Self.one + "/meta.config"), access: .instance(.viewer),
                summary: "The file that an app of the instance is built with.",
                queries: [RouteInput("key", "The id of the device key that the app signs with.")]
            ) { exchange throws(ConsoleFault) in
                let instance = try desk.instance(exchange.instanceID)
                if let key = exchange.query["key"], !instance.keys(for: .device).contains(where: { $0.id == key }) {
                    throw .noSuch("key", key)
                }
                let file = MetaConfigFile(
                    instance, server: devices.host, port: devices.port, key: exchange.query["key"])
                return .download(Array(file.text.utf8), type: "application/json", name: "meta.config")
            },
        ]
    }

    private var changing: [Route] {
        [
            Route(
                method: .post, pattern: RoutePattern("/api/v1/instances"), access: .service(.administrator),
                summary: "Creates an instance.",
                inputs: [
                    RouteInput("instanceId", required: true, "<workspaceId>_<appId>."),
                    RouteInput("appKey", .flag, "Makes a device key as well, which takes the password."),
                ] + InstanceInput.inputs, example: AnswerExamples.createdInstance
            ) { exchange throws(ConsoleFault) in try await create(exchange) },
            Route(
                method: .put, pattern: RoutePattern(Self.one), access: .instance(.administrator),
                summary: "Changes settings of an instance that still has the revision given; what is absent stays. To "
                    + "switch signatures off takes the password.",
                inputs: InstanceInput.inputs, example: AnswerExamples.instance
            ) { exchange throws(ConsoleFault) in
                let input = try exchange.input(InstanceInput.self)
                guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
                let id = exchange.instanceID
                let old = try await desk.current(revision, \.revision) { () throws(ConsoleFault) in
                    try desk.instance(id)
                }
                let new = try input.instance(old)
                let visitor = try exchange.signedIn()
                if Self.asksForPassword(old, new), !visitor.isConfirmed { throw .passwordNeeded }
                let message = new.bus
                let made = try await desk.change(by: visitor) { $0.modifyInstance = message }
                try desk.requireCopy(of: made)
                return try item(exchange)
            },
            switching("enable", true, "Devices and backends of the instance are served."),
            switching("disable", false, "Pushes are refused and nothing goes out; data and keys stay."),
        ]
    }

    /// Whether a change is one that takes the password: with signatures off, anybody can push who reaches the API.
    static func asksForPassword(_ old: Instance, _ new: Instance) -> Bool {
        old.requiresSignature && !new.requiresSignature
    }

    private func create(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let input = try exchange.input(InstanceInput.self)
        let instance = try input.instance(nil)
        guard desk.directory.instance(instance.id) == nil else { throw .exists("instanceId") }
        if input.appKey == true, !visitor.isConfirmed { throw .passwordNeeded }
        let message = instance.bus
        try desk.requireCopy(of: try await desk.change(by: visitor) { $0.createInstance = message })
        var key: CreatedKey?
        if input.appKey == true {
            do throws(ConsoleFault) {
                key = try await makeKey(.device, of: instance.id, by: visitor)
            } catch {
                throw ConsoleFault(status: 502, code: "KEY_NOT_MADE", word: "fault.keyNotMade")
            }
        }
        return .json(
            Created(instance: InstanceItem(try desk.instance(instance.id), exchange.words), key: key), status: 201)
    }

    private func switching(_ word: String, _ isEnabled: Bool, _ summary: String) -> Route {
        Route(
            method: .post, pattern: RoutePattern("\(Self.one)/\(word)"), access: .service(.administrator),
            summary: summary, example: AnswerExamples.instance
        ) { exchange throws(ConsoleFault) in
            var instance = try desk.instance(exchange.instanceID)
            instance.isEnabled = isEnabled
            let message = instance.bus
            let made = try await desk.change(by: try exchange.signedIn()) { $0.modifyInstance = message }
            try desk.requireCopy(of: made)
            return try item(exchange)
        }
    }

    // MARK: Keys

    private var keys: [Route] {
        [
            Route(
                method: .post, pattern: RoutePattern(Self.one + "/keys"), access: .instance(.administrator),
                needsPassword: true,
                summary: "Makes a key; its secret is in this answer alone. At most two live keys of a "
                    + "purpose: to rotate, make the second, switch to it, revoke the first.",
                inputs: [
                    RouteInput("purpose", required: true, "backend, device or callout."),
                    RouteInput("secret", "For callouts: a secret of the tenant's own, in Base64."),
                    RouteInput("requestsPerSecond", .whole, "0 or absent: no limit."),
                    RouteInput("pushesPerDay", .whole, "0 or absent: no limit."),
                ], example: AnswerExamples.key
            ) { exchange throws(ConsoleFault) in try await createKey(exchange) },
            Route(
                method: .delete, pattern: RoutePattern(Self.one + "/keys/{key}"), access: .instance(.administrator),
                needsPassword: true, summary: "Ends a key: what it signs is refused from then on."
            ) { exchange throws(ConsoleFault) in
                let name = Mss_Bus_V1_KeyName.with {
                    $0.instanceID = exchange.instanceID.text
                    $0.keyID = exchange.part("key")
                }
                try await desk.change(by: try exchange.signedIn()) { $0.revokeKey = name }
                return .done
            },
        ]
    }

    private func createKey(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try exchange.input(KeyInput.self)
        guard let purpose = AppKey.Purpose.allCases.first(where: { $0.word == input.purpose }) else {
            throw .wrong("purpose", "fault.choice", AppKey.Purpose.allCases.map(\.word).joined(separator: ", "))
        }
        let given = (input.secret ?? "").trimmed
        guard let secret = Data(base64Encoded: given) else { throw .wrong("secret", "fault.base64") }
        let limits = KeyLimits(
            requestsPerSecond: input.requestsPerSecond.flatMap { $0 == 0 ? nil : $0 },
            pushesPerDay: input.pushesPerDay.flatMap { $0 == 0 ? nil : $0 })
        if let fault = limits.fault { throw .refused(fault, field: "requestsPerSecond") }
        return .json(
            try await makeKey(
                purpose, of: exchange.instanceID, secret: secret, limits: limits, by: try exchange.signedIn()),
            status: 201)
    }

    /// - Parameter secret: the tenant's own; empty: one is made.
    private func makeKey(
        _ purpose: AppKey.Purpose, of instanceID: InstanceID, secret: Data = Data(), limits: KeyLimits = KeyLimits(),
        by visitor: Visitor
    ) async throws(ConsoleFault) -> CreatedKey {
        let request = Mss_Bus_V1_CreateKey.with {
            $0.instanceID = instanceID.text
            $0.purpose = purpose.bus
            $0.secret = secret
            $0.limits = limits.bus
            $0.keyID = "k" + HexText.of(RandomBytes.make(8))
        }
        let made = try await desk.change(by: visitor) { $0.createKey = request }
        let shown = secret.isEmpty ? made.secret.base64EncodedString() : nil
        let file = MetaConfigFile(
            try desk.instance(instanceID), server: devices.host, port: devices.port, key: made.keyID, secret: shown)
        return CreatedKey(
            id: made.keyID, purpose: purpose.word, secret: shown,
            metaConfig: purpose == .device && shown != nil ? file.text : nil)
    }

    // MARK: Session check

    private var check: Route {
        Route(
            method: .post, pattern: RoutePattern(Self.one + "/validator/check"), access: .instance(.administrator),
            summary: "Asks the tenant about a session, as gateways do, and says what it answered.",
            inputs: [
                RouteInput("userId", required: true, "A user of the tenant."),
                RouteInput("sessionId", required: true, "A session of that user."),
            ], example: AnswerExamples.check
        ) { exchange throws(ConsoleFault) in
            let input = try exchange.input(CheckInput.self)
            guard !input.userId.trimmed.isEmpty else { throw .wrong("userId", "fault.missing") }
            guard !input.sessionId.trimmed.isEmpty else { throw .wrong("sessionId", "fault.missing") }
            let id = try desk.instance(exchange.instanceID).id.text
            let start = ContinuousClock.now
            let reply = try await desk.validate { correlation in
                var command = Mss_Bus_V1_ValidateCommand()
                command.correlation = correlation
                command.instanceID = id
                command.userID = input.userId.trimmed
                command.sessionID = input.sessionId.trimmed
                return command
            }
            let verdict =
                switch reply.verdict {
                case .valid: "valid"
                case .invalid: "invalid"
                case .unknown, .UNRECOGNIZED: "unknown"
                }
            return .json(
                CheckAnswer(
                    verdict: verdict, reason: reply.reason, milliseconds: start.duration(to: .now).wholeMilliseconds,
                    detail: exchange.words.text(
                        "verdict.\(verdict)", Sentences.text(reply.reason, in: exchange.language))))
        }
    }

    // MARK: Parts

    private func list(_ exchange: Exchange) throws(ConsoleFault) -> List {
        guard desk.directory.isLoaded else { throw .starting }
        let account = try exchange.signedIn().account
        let seen = desk.directory.instances.filter { account.role(at: $0.id) != nil }
        return List(
            instances: seen.map { InstanceItem($0, exchange.words) }, isEmpty: seen.isEmpty,
            mayCreate: Access.service(.administrator).allows(account, instance: nil))
    }

    private func item(_ exchange: Exchange) throws(ConsoleFault) -> ConsoleAnswer {
        .json(InstanceItem(try desk.instance(exchange.instanceID), exchange.words))
    }

    private func page(_ exchange: Exchange) throws(ConsoleFault) -> Page {
        let item = InstanceItem(try desk.instance(exchange.instanceID), exchange.words)
        return Page(
            instance: item,
            mayChange: Access.instance(.administrator).allows(
                exchange.visitor?.account, instance: exchange.instanceID),
            metaConfig: item.api + "/meta.config", deviceKeys: item.keys.filter { $0.purpose == "device" },
            here: item.servicePage)
    }
}
