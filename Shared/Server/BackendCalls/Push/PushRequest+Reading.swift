import ServiceKit
import SyncModel

// The stateless checks of H2 and H3, in the order of H3. The first failed check decides the result code.
extension PushRequest {
    /// Reads a push. Every input gives a push or a refusal.
    ///
    /// - Parameters:
    ///   - instanceID: the instanceId of the query; nil when it is absent or unreadable.
    ///   - body: the JSON text.
    package init(scope: PushScope, instanceID: String?, body: [UInt8]) throws(PushRefusal) {
        let fields = try Fields(instanceID: instanceID, body: body)
        let source = try fields.requirePresence(scope: scope)
        try fields.checkLengthsWithOwnCode(source)

        // All later faults have the same code.
        try Self.checkIdentifier(fields.instanceID, "instanceId")
        let thirdMessageID = try fields.identifier("thirdMsgId", maximumUnits: nil)
        let linkToken = scope == .global ? "" : try fields.identifier("linkToken", maximumUnits: Limits.linkTokenUnits)
        let bizType = try fields.identifier("bizType", maximumUnits: nil)
        let targeting = try fields.targeting()
        let validUntil = try fields.validUntil()
        let payload = try fields.payload(source)
        let attributes = try fields.attributes()
        let conversation = try fields.conversation()
        guard bizType.utf16.count <= Limits.bizTypeUnits else {
            throw PushRefusal(
                .bizNotOnline,
                "bizType has more than \(Limits.bizTypeUnits) characters, so none such exists; check the Sync ID."
            )
        }
        self.init(
            scope: scope, instanceID: InstanceID(fields.instanceID), bizType: BizType(bizType), linkToken: linkToken,
            thirdMessageID: ThirdMessageID(thirdMessageID), payload: payload, isBinary: source == .binaryPayload,
            targeting: targeting, validUntil: validUntil, attributes: attributes, conversation: conversation)
    }

    private enum PayloadSource: String {
        case payload
        case binaryPayload
    }

    static let noInstance = PushRefusal(
        .argsIsNull, "instanceId is missing, given twice or not readable; send ?instanceId=<workspaceId>_<appId> once.")

    private static func refused(_ detail: String) -> PushRefusal { PushRefusal(.argsIsNull, detail) }

    private static func checkIdentifier(_ text: String, _ name: String) throws(PushRefusal) {
        guard !text.utf8.contains(0) else { throw refused("\(name) contains NUL; send it without.") }
    }

    /// The members of a body; their checks run in the order of the methods' calls.
    private struct Fields {
        let instanceID: String
        private let members: [String: JSONValue]

        init(instanceID: String?, body: [UInt8]) throws(PushRefusal) {
            do {
                var members = try JSONReader.members(of: body)
                // Line breaks are not data: no check sees them, and they do not count as characters.
                if case .string(let text)? = members["binaryPayload"] {
                    members["binaryPayload"] = .string(Base64.withoutLineBreaks(text))
                }
                self.members = members
            } catch {
                throw refused(error.detail)
            }
            guard let instanceID, !instanceID.isEmpty else {
                throw noInstance
            }
            self.instanceID = instanceID
        }

        /// The value of a member; nil for null and the empty string, which count as missing.
        private func given(_ name: String) -> JSONValue? {
            switch members[name] {
            case nil, .null, .string(""): nil
            case let value: value
            }
        }

        /// Checks the mandatory members and returns the payload to use: `payload` takes precedence over
        /// `binaryPayload`.
        func requirePresence(scope: PushScope) throws(PushRefusal) -> PayloadSource {
            guard given("thirdMsgId") != nil else {
                throw PushRefusal(
                    .thirdMessageIDIsNull, "thirdMsgId is missing; send an id of your own, unique for each message.")
            }
            guard given("bizType") != nil else {
                throw refused("bizType is missing; send the Sync ID of a configuration.")
            }
            guard scope == .global || given("linkToken") != nil else {
                throw refused("linkToken is missing; send the user id or device id that the push is for.")
            }
            if given("payload") != nil { return .payload }
            guard given("binaryPayload") != nil else {
                throw refused("payload and binaryPayload are both missing; send one of them.")
            }
            return .binaryPayload
        }

        /// Checks the lengths that have result codes of their own.
        func checkLengthsWithOwnCode(_ source: PayloadSource) throws(PushRefusal) {
            if case .string(let text)? = given("thirdMsgId"), text.utf16.count > Limits.thirdMessageIDUnits {
                throw PushRefusal(
                    .thirdMessageIDLong,
                    "thirdMsgId has more than \(Limits.thirdMessageIDUnits) characters; send a shorter one.")
            }
            let units: Int
            switch given(source.rawValue) {
            case .string(let text): units = text.utf16.count
            case .structure(let text): units = String(decoding: text, as: UTF8.self).utf16.count
            default: return
            }
            guard units <= Limits.payloadUnits else {
                throw PushRefusal(
                    .payloadLong,
                    "\(source.rawValue) has more than \(Limits.payloadUnits) characters; send less, or a link to it."
                )
            }
        }

        /// A mandatory id: a string without NUL of at most `maximumUnits` UTF-16 units.
        func identifier(_ name: String, maximumUnits: Int?) throws(PushRefusal) -> String {
            guard let text = try optionalString(name, maximumUnits: maximumUnits) else {
                throw refused("\(name) is missing; send it.")
            }
            try checkIdentifier(text, name)
            return text
        }

        private func optionalString(_ name: String, maximumUnits: Int?) throws(PushRefusal) -> String? {
            switch given(name) {
            case nil: return nil
            case .string(let text):
                guard let maximumUnits, text.utf16.count > maximumUnits else { return text }
                throw refused("\(name) has more than \(maximumUnits) characters; send a shorter one.")
            default: throw refused("\(name) is not a string; send it as a JSON string.")
            }
        }

        func targeting() throws(PushRefusal) -> Targeting {
            var targeting = Targeting()
            if let name = try optionalString("osType", maximumUnits: Limits.osTypeUnits) {
                guard let system = OperatingSystem(name: name) else {
                    throw refused("osType is not iOS or Android; send one of them, or leave it out for both.")
                }
                targeting.operatingSystem = system
            }
            targeting.minimumVersion = try optionalString("appMinVersion", maximumUnits: Limits.versionUnits)
            targeting.maximumVersion = try optionalString("appMaxVersion", maximumUnits: Limits.versionUnits)
            let minimum = try version(targeting.minimumVersion, "appMinVersion")
            let maximum = try version(targeting.maximumVersion, "appMaxVersion")
            if let minimum, let maximum, maximum < minimum {
                throw refused("appMinVersion is above appMaxVersion, so no device can match; exchange or correct them.")
            }
            return targeting
        }

        private func version(_ text: String?, _ name: String) throws(PushRefusal) -> AppVersion? {
            guard let text else { return nil }
            guard let version = AppVersion(text) else {
                throw refused("\(name) is no version of numbers and dots; send one such as 10.2.1.")
            }
            return version
        }

        /// 13 digits, as a number or a string.
        func validUntil() throws(PushRefusal) -> WallTime? {
            let text: String
            switch given("validTimeEnd") {
            case nil: return nil
            case .number(let spelling): text = spelling
            case .string(let string): text = string
            default:
                throw refused("validTimeEnd is neither a number nor a string; send epoch milliseconds of 13 digits.")
            }
            let isDigits = text.utf8.allSatisfy { ($0 >= UInt8(ascii: "0")) && ($0 <= UInt8(ascii: "9")) }
            guard text.utf8.count == 13, isDigits, let milliseconds = Int64(text) else {
                throw refused("validTimeEnd is not epoch milliseconds of 13 digits; send such as 1767225600000.")
            }
            return WallTime(milliseconds: milliseconds)
        }

        /// An object of texts, numbers and booleans. Members with null count as absent.
        func attributes() throws(PushRefusal) -> SubscriptionValues {
            var attributes = SubscriptionValues()
            guard let value = given("attributes") else { return attributes }
            guard case .structure(let text) = value, let members = try? JSONReader.members(of: text) else {
                throw refused("attributes is not a JSON object; send one of texts, numbers and booleans.")
            }
            for (name, member) in members {
                switch member {
                case .null: continue
                case .bool(let boolean): attributes[name] = .boolean(boolean)
                case .string(let text): attributes[name] = .text(text)
                case .number(let spelling):
                    guard let number = Double(spelling), number.isFinite else {
                        throw refused("attributes.\(name) is too large a number; send a smaller one.")
                    }
                    attributes[name] = .number(number)
                case .structure:
                    throw refused("attributes.\(name) is an object or array; send a text, a number or a boolean.")
                }
            }
            return attributes
        }

        func conversation() throws(PushRefusal) -> String {
            guard let text = try optionalString("conversation", maximumUnits: Limits.conversationUnits) else {
                return ""
            }
            try checkIdentifier(text, "conversation")
            return text
        }

        func payload(_ source: PayloadSource) throws(PushRefusal) -> [UInt8] {
            switch (source, given(source.rawValue)) {
            case (.payload, .string(let text)): return Array(text.utf8)
            case (.payload, .structure(let text)): return text
            case (.payload, _):
                throw refused("payload is a number or boolean; send a string, an object or an array.")
            case (.binaryPayload, .string(let text)):
                guard let bytes = Base64.decode(text) else {
                    throw refused(
                        "binaryPayload is not Base64; use the standard alphabet with padding.")
                }
                return bytes
            case (.binaryPayload, _): throw refused("binaryPayload is not a string; send Base64 text.")
            }
        }
    }
}
