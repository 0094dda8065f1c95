/// One badge as the server, or the app, has set it.
public struct Badge: Hashable, Sendable {
    /// Where it is.
    public let path: BadgePath
    /// What it is about, such as `chat`: counted by it; may be empty.
    public let business: String
    /// What it shows.
    public let mark: BadgeMark
    /// Rises when there is something new to see. A badge that the user has tapped stays away until its stamp is above
    /// the tapped one's; without a stamp each list brings it back.
    public let stamp: Int64?

    /// - Throws: `ClientServiceError.invalidArgument` for a number below 0 or above 1,000,000, and for a business or
    ///   text of more than 64 characters.
    public init(
        path: BadgePath, business: String = "", mark: BadgeMark, stamp: Int64? = nil
    ) throws(ClientServiceError) {
        guard business.utf16.count <= ServiceLimits.wordUnits else {
            throw ClientServiceError(
                .invalidArgument, "the business of \(path) has over \(ServiceLimits.wordUnits) characters")
        }
        switch mark {
        case .number(let number) where !(0...ServiceLimits.badgeNumber).contains(number):
            throw ClientServiceError(
                .invalidArgument, "the number of \(path) is 0 to \(ServiceLimits.badgeNumber), not \(number)")
        case .text(let text) where text.utf16.count > ServiceLimits.wordUnits:
            throw ClientServiceError(
                .invalidArgument, "the text of \(path) has over \(ServiceLimits.wordUnits) characters")
        default: break
        }
        self.path = path
        self.business = business
        self.mark = mark
        self.stamp = stamp
    }

    /// Whether there is anything to see.
    var isShown: Bool { mark.weight(.all) > 0 }
}

extension Badge: Codable {
    private enum Member: String, CodingKey { case path, business, style, number, text, stamp }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        let style = try members.decode(String.self, forKey: .style)
        let mark: BadgeMark
        switch style {
        case ".": mark = .point
        case "number": mark = .number(try members.decode(Int.self, forKey: .number))
        case "new": mark = .new
        case "text": mark = .text(try members.decode(String.self, forKey: .text))
        case "none": mark = .none
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .style, in: members, debugDescription: "there is no style \(style)")
        }
        try self.init(
            path: members.decode(BadgePath.self, forKey: .path),
            business: members.decodeIfPresent(String.self, forKey: .business) ?? "", mark: mark,
            stamp: members.decodeIfPresent(Int64.self, forKey: .stamp))
    }

    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Member.self)
        try members.encode(path, forKey: .path)
        if !business.isEmpty { try members.encode(business, forKey: .business) }
        switch mark {
        case .point: try members.encode(".", forKey: .style)
        case .number(let number):
            try members.encode("number", forKey: .style)
            try members.encode(number, forKey: .number)
        case .new: try members.encode("new", forKey: .style)
        case .text(let text):
            try members.encode("text", forKey: .style)
            try members.encode(text, forKey: .text)
        case .none: try members.encode("none", forKey: .style)
        }
        try members.encodeIfPresent(stamp, forKey: .stamp)
    }
}
