import Foundation
import SyncModel

/// What a backend asks for, checked for shape and limits; pure and total (spec H2, H3).
struct PushRequest: Equatable, Sendable {
    /// Which endpoint was called.
    enum Scope: Sendable {
        case single
        case global
    }

    /// A refusal before anything was attempted: the code and a sentence for the caller.
    struct Refusal: Error, Equatable {
        let code: ResultCode
        let detail: String
    }

    let instanceID: InstanceID
    let bizType: BizType
    /// Empty for global push.
    let linkToken: String
    let thirdMessageID: ThirdMessageID
    let payload: [UInt8]
    let isBinary: Bool
    let targeting: Targeting
    /// Nil: the default.
    let validUntil: WallTime?

    /// Reads and checks in the order of H3, so that of two mistakes the same one is always named.
    init(instanceID: String?, body: [UInt8], scope: Scope) throws(Refusal) {
        let members: Members
        do throws(JSONText.Problem) {
            members = Members(try JSONText.object(body))
        } catch {
            throw Refusal(code: .argsIsNull, detail: "\(error.rawValue); send one JSON object in UTF-8")
        }
        guard let instanceID, !instanceID.isEmpty else { throw Self.missing("the query parameter instanceId") }
        if members.isMissing("thirdMsgId") {
            throw Refusal(code: .thirdMessageIDIsNull, detail: "thirdMsgId is missing; give every push an id of its own")
        }
        for name in scope == .single ? ["bizType", "linkToken"] : ["bizType"] where members.isMissing(name) {
            throw Self.missing(name)
        }
        let payloadName = members.isMissing("payload") ? "binaryPayload" : "payload"
        if members.isMissing(payloadName) { throw Self.missing("payload or binaryPayload") }
        if let text = members.text("thirdMsgId"), text.utf16.count > Limits.thirdMessageIDUnits {
            throw Refusal(
                code: .thirdMessageIDLong,
                detail: "thirdMsgId has \(text.utf16.count) characters, the limit is \(Limits.thirdMessageIDUnits)")
        }
        if let units = members.units(payloadName), units > Limits.payloadUnits {
            throw Refusal(
                code: .payloadLong,
                detail: "\(payloadName) has \(units) characters, the limit is \(Limits.payloadUnits)")
        }
        let thirdMessageID = try members.identifier("thirdMsgId", limit: Limits.thirdMessageIDUnits)
        // A longer bizType cannot exist, which the look-up says.
        let bizType = try members.identifier("bizType", limit: .max)
        let linkToken = scope == .single ? try members.identifier("linkToken", limit: Limits.linkTokenUnits) : ""
        (payload, isBinary) = try members.payload(payloadName)
        targeting = try members.targeting()
        validUntil = try members.validUntil()
        self.instanceID = InstanceID(instanceID)
        self.bizType = BizType(bizType)
        self.linkToken = linkToken
        self.thirdMessageID = ThirdMessageID(thirdMessageID)
    }

    private static func missing(_ what: String) -> Refusal {
        Refusal(code: .argsIsNull, detail: "\(what) is missing")
    }
}

/// The members of a request body and the checks of single ones.
private struct Members {
    private let values: [String: JSONText.Value]

    init(_ values: [String: JSONText.Value]) { self.values = values }

    /// Absent, null and the empty text are the same (spec H2).
    func isMissing(_ name: String) -> Bool {
        switch values[name] {
        case nil, .null?, .string("")?: true
        default: false
        }
    }

    func text(_ name: String) -> String? {
        if case .string(let text)? = values[name] { return text }
        return nil
    }

    /// Length in UTF-16 units of a text, or of a structure's text.
    func units(_ name: String) -> Int? {
        switch values[name] {
        case .string(let text)?: text.utf16.count
        case .structure(let bytes)?: String(decoding: bytes, as: UTF8.self).utf16.count
        default: nil
        }
    }

    func identifier(_ name: String, limit: Int) throws(PushRequest.Refusal) -> String {
        guard let text = text(name) else { throw refusal("\(name) must be a text") }
        guard text.utf16.count <= limit else {
            throw refusal("\(name) has \(text.utf16.count) characters, the limit is \(limit)")
        }
        guard !text.utf8.contains(0) else { throw refusal("\(name) contains a NUL character; leave it out") }
        return text
    }

    func payload(_ name: String) throws(PushRequest.Refusal) -> (bytes: [UInt8], isBinary: Bool) {
        switch (name, values[name]) {
        case ("payload", .string(let text)?): return (Array(text.utf8), false)
        case ("payload", .structure(let bytes)?): return (bytes, false)
        case ("payload", _): throw refusal("payload must be a text, an object or an array")
        case (_, .string(let text)?):
            guard let data = Data(base64Encoded: text) else { throw refusal("binaryPayload is not Base64 text") }
            return ([UInt8](data), true)
        default: throw refusal("binaryPayload must be Base64 text")
        }
    }

    func targeting() throws(PushRequest.Refusal) -> Targeting {
        var targeting = Targeting()
        if let name = try optionalText("osType", limit: Limits.osTypeUnits) {
            guard let system = OperatingSystem(name: name) else { throw refusal("osType is iOS or Android") }
            targeting.operatingSystem = system
        }
        targeting.minimumVersion = try version("appMinVersion")
        targeting.maximumVersion = try version("appMaxVersion")
        if let minimum = targeting.minimumVersion.flatMap(AppVersion.init),
            let maximum = targeting.maximumVersion.flatMap(AppVersion.init), maximum < minimum
        {
            throw refusal("appMinVersion is above appMaxVersion")
        }
        return targeting
    }

    private func version(_ name: String) throws(PushRequest.Refusal) -> String? {
        guard let text = try optionalText(name, limit: Limits.versionUnits) else { return nil }
        guard AppVersion(text) != nil else { throw refusal("\(name) is not of the form 1.2.3") }
        return text
    }

    /// Thirteen digits, as number or text.
    func validUntil() throws(PushRequest.Refusal) -> WallTime? {
        guard !isMissing("validTimeEnd") else { return nil }
        let text: String
        switch values["validTimeEnd"] {
        case .string(let given)?: text = given
        case .number(let given)?: text = given
        default: throw refusal("validTimeEnd must be a number")
        }
        guard text.utf8.count == 13, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let value = Int64(text) else {
            throw refusal("validTimeEnd must be milliseconds since 1970 in 13 digits")
        }
        return WallTime(milliseconds: value)
    }

    private func optionalText(_ name: String, limit: Int) throws(PushRequest.Refusal) -> String? {
        isMissing(name) ? nil : try identifier(name, limit: limit)
    }

    private func refusal(_ detail: String) -> PushRequest.Refusal {
        PushRequest.Refusal(code: .argsIsNull, detail: detail)
    }
}
