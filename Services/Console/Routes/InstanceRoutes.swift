import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Instances, and their service management: signature, keys, session check, limits (C8, C12, C13).
struct InstanceRoutes: Sendable {
    let control: ControlService
    /// The address of the gateways, for `meta.config`.
    let devices: DeviceAddress

    /// The instances that the account may see.
    struct List: Encodable, Sendable {
        let instances: [InstanceItem]

        // For pages alone.
        let isEmpty: Bool
        let mayCreate: Bool
        /// The page to return to after a new secret was shown.
        let here = "/instances"
        let verdictLifetimeSeconds = 600

        private enum CodingKeys: String, CodingKey { case instances }
    }

    /// The service management of one instance.
    struct Page: Sendable {
        let instance: InstanceItem
        let mayChange: Bool
        let metaConfig: String
        let deviceKeys: [InstanceItem.Key]
        /// The page to return to after a new secret was shown.
        let here: String
    }

    private struct KeyInput: Decodable {
        let purpose: String
        let secret: String?
        let requestsPerSecond: Int?
        let pushesPerDay: Int?
    }

    /// A new key with its secret, which is shown only once.
    struct CreatedKey: Encodable {
        let id: String
        let purpose: String
        let secret: String?
        /// For a device key: the `meta.config` with the key and its secret.
        let metaConfig: String?
    }

    /// A new instance, with its app key when one was requested.
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

    /// The tenant's verdict on a test request.
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
                request throws(ConsoleFault) in
                let seen = try list(request).instances
                // The start page is the overview of the instance that was viewed last, or of the only one (C1).
                let chosen = request.chosenInstance(in: control.directory)?.id.text
                let page = seen.first { $0.instanceId == chosen || seen.count == 1 }?.page
                return .redirect(to: page ?? "/instances")
            },
            Route(method: .get, pattern: RoutePattern("/instances"), access: .signedIn, summary: "Instances.") {
                request throws(ConsoleFault) in
                .page(PageContent(template: "instances", title: "title.instances", content: try list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1/instances"), access: .signedIn,
                summary: "The instances at which the account has a role.", example: AnswerExamples.instances
            ) { request throws(ConsoleFault) in .json(try list(request)) },
            Route(
                method: .get, pattern: RoutePattern("/instances/{instance}/service"), access: .instance(.viewer),
                summary: "Service management."
            ) { request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "service", title: "tab.service", tab: .service, instanceID: request.instanceID,
                        content: try page(request)))
            },
            Route(
                method: .get, pattern: RoutePattern(Self.one), access: .instance(.viewer),
                summary: "An instance, its settings and its live keys without their secrets.",
                example: AnswerExamples.instance
            ) { request throws(ConsoleFault) in try item(request) },
            Route(
                method: .get, pattern: RoutePattern(Self.one + "/meta.config"), access: .instance(.viewer),
                summary: "The configuration file for an app of the instance.",
                queries: [RouteInput("key", "The id of the device key that the app signs with.")]
            ) { request throws(ConsoleFault) in
                let instance = try control.instance(request.instanceID)
                if let key = request.query["key"], !instance.keys(for: .device).contains(where: { $0.id == key }) {
                    throw .noSuch("key", key)
                }
                let file = MetaConfigFile(
                    instance, server: devices.host, port: devices.port, key: request.query["key"])
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
                    RouteInput("appKey", .flag, "Also creates a device key, which needs the password again."),
                ] + InstanceInput.inputs, example: AnswerExamples.createdInstance
            ) { request throws(ConsoleFault) in try await create(request) },
            Route(
                method: .put, pattern: RoutePattern(Self.one), access: .instance(.administrator),
                summary: "Changes settings of an instance that still has the given revision; absent members stay. "
                    + "Switching signatures off needs the password again.",
                inputs: InstanceInput.inputs, example: AnswerExamples.instance
            ) { request throws(ConsoleFault) in
                let input = try request.input(InstanceInput.self)
                guard let revision = input.revision else { throw .wrong("revision", "fault.missing") }
                let id = request.instanceID
                let old = try await control.current(revision, \.revision) { () throws(ConsoleFault) in
                    try control.instance(id)
                }
                let new = try input.instance(old)
                let principal = try request.signedIn()
                if Self.asksForPassword(old, new), !principal.isConfirmed { throw .passwordNeeded }
                let message = new.bus
                let made = try await control.change(by: principal) { $0.modifyInstance = message }
                try control.requireCopy(of: made)
                return try item(request)
            },
            switching("enable", true, "Enables an instance: its devices and backends are served."),
            switching(
                "disable", false, "Disables an instance: pushes are refused and no data is sent; data and keys stay."),
        ]
    }

    /// Whether a change needs the password again. It does when it switches signatures off, because any client of the
    /// API can push then.
    static func asksForPassword(_ old: Instance, _ new: Instance) -> Bool {
        old.requiresSignature && !new.requiresSignature
    }

    private func create(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let input = try request.input(InstanceInput.self)
        let instance = try input.instance(nil)
        guard control.directory.instance(instance.id) == nil else { throw .exists("instanceId") }
        if input.appKey == true, !principal.isConfirmed { throw .passwordNeeded }
        let message = instance.bus
        try control.requireCopy(of: try await control.change(by: principal) { $0.createInstance = message })
        var key: CreatedKey?
        if input.appKey == true {
            do throws(ConsoleFault) {
                key = try await makeKey(.device, of: instance.id, by: principal)
            } catch {
                throw ConsoleFault(status: 502, code: "KEY_NOT_MADE", word: "fault.keyNotMade")
            }
        }
        return .json(
            Created(instance: InstanceItem(try control.instance(instance.id), request.words), key: key), status: 201)
    }

    private func switching(_ word: String, _ isEnabled: Bool, _ summary: String) -> Route {
        Route(
            method: .post, pattern: RoutePattern("\(Self.one)/\(word)"), access: .service(.administrator),
            summary: summary, example: AnswerExamples.instance
        ) { request throws(ConsoleFault) in
            var instance = try control.instance(request.instanceID)
            instance.isEnabled = isEnabled
            let message = instance.bus
            let made = try await control.change(by: try request.signedIn()) { $0.modifyInstance = message }
            try control.requireCopy(of: made)
            return try item(request)
        }
    }

    // MARK: Keys

    private var keys: [Route] {
        [
            Route(
                method: .post, pattern: RoutePattern(Self.one + "/keys"), access: .instance(.administrator),
                needsPassword: true,
                summary: "Creates a key; its secret is in this answer only. At most two live keys of a "
                    + "purpose: to rotate, create the second, switch to it, revoke the first.",
                inputs: [
                    RouteInput("purpose", required: true, "backend, device or callout."),
                    RouteInput("secret", "For callouts: the tenant's own secret, in Base64."),
                    RouteInput("requestsPerSecond", .whole, "0 or absent: no limit."),
                    RouteInput("pushesPerDay", .whole, "0 or absent: no limit."),
                ], example: AnswerExamples.key
            ) { request throws(ConsoleFault) in try await createKey(request) },
            Route(
                method: .delete, pattern: RoutePattern(Self.one + "/keys/{key}"), access: .instance(.administrator),
                needsPassword: true, summary: "Revokes a key: calls that it signs are refused."
            ) { request throws(ConsoleFault) in
                let name = Mss_Bus_V1_KeyName.with {
                    $0.instanceID = request.instanceID.text
                    $0.keyID = request.part("key")
                }
                try await control.change(by: try request.signedIn()) { $0.revokeKey = name }
                return .done
            },
        ]
    }

    private func createKey(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let input = try request.input(KeyInput.self)
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
                purpose, of: request.instanceID, secret: secret, limits: limits, by: try request.signedIn()),
            status: 201)
    }

    /// - Parameter secret: the tenant's own secret; empty: the writer generates one.
    private func makeKey(
        _ purpose: AppKey.Purpose, of instanceID: InstanceID, secret: Data = Data(), limits: KeyLimits = KeyLimits(),
        by principal: RequestPrincipal
    ) async throws(ConsoleFault) -> CreatedKey {
        let command = Mss_Bus_V1_CreateKey.with {
            $0.instanceID = instanceID.text
            $0.purpose = purpose.bus
            $0.secret = secret
            $0.limits = limits.bus
            $0.keyID = "k" + HexText.of(RandomBytes.make(8))
        }
        let made = try await control.change(by: principal) { $0.createKey = command }
        let shown = secret.isEmpty ? made.secret.base64EncodedString() : nil
        let file = MetaConfigFile(
            try control.instance(instanceID), server: devices.host, port: devices.port, key: made.keyID, secret: shown)
        return CreatedKey(
            id: made.keyID, purpose: purpose.word, secret: shown,
            metaConfig: purpose == .device && shown != nil ? file.text : nil)
    }

    // MARK: Session check

    private var check: Route {
        Route(
            method: .post, pattern: RoutePattern(Self.one + "/validator/check"), access: .instance(.administrator),
            summary: "Requests the tenant's verdict on a session, as gateways do, and returns it.",
            inputs: [
                RouteInput("userId", required: true, "A user of the tenant."),
                RouteInput("sessionId", required: true, "A session of that user."),
            ], example: AnswerExamples.check
        ) { request throws(ConsoleFault) in
            let input = try request.input(CheckInput.self)
            guard !input.userId.trimmed.isEmpty else { throw .wrong("userId", "fault.missing") }
            guard !input.sessionId.trimmed.isEmpty else { throw .wrong("sessionId", "fault.missing") }
            let id = try control.instance(request.instanceID).id
            let start = ContinuousClock.now
            let reply = try await control.verdict(
                of: input.sessionId.trimmed, user: input.userId.trimmed, instance: id, for: try request.signedIn())
            let verdict = reply.verdict.word
            return .json(
                CheckAnswer(
                    verdict: verdict, reason: reply.reason, milliseconds: start.duration(to: .now).wholeMilliseconds,
                    detail: request.words.text(
                        "verdict.\(verdict)", SentenceTranslations.text(reply.reason, in: request.language))))
        }
    }

    // MARK: Parts

    private func list(_ request: ConsoleRequest) throws(ConsoleFault) -> List {
        guard control.directory.isLoaded else { throw .starting }
        let account = try request.signedIn().account
        let seen = control.directory.instances.filter { account.role(at: $0.id) != nil }
        return List(
            instances: seen.map { InstanceItem($0, request.words) }, isEmpty: seen.isEmpty,
            mayCreate: Access.service(.administrator).allows(account, instance: nil))
    }

    private func item(_ request: ConsoleRequest) throws(ConsoleFault) -> ConsoleAnswer {
        .json(InstanceItem(try control.instance(request.instanceID), request.words))
    }

    private func page(_ request: ConsoleRequest) throws(ConsoleFault) -> Page {
        let item = InstanceItem(try control.instance(request.instanceID), request.words)
        return Page(
            instance: item,
            mayChange: Access.instance(.administrator).allows(
                request.principal?.account, instance: request.instanceID),
            metaConfig: item.api + "/meta.config", deviceKeys: item.keys.filter { $0.purpose == "device" },
            here: item.servicePage)
    }
}
