/// One badge. The server sets badges by pushes, the app sets its own with `Badges.setLocal`.
public struct Badge: Hashable, Sendable {
    /// The position of the badge in the app's user interface.
    public let path: BadgePath
    /// The business area that the badge belongs to, such as `chat`. `Badges.count(ofBusiness:mode:)` counts by it. May
    /// be empty.
    public let business: String
    /// The style and the content of the badge.
    public let mark: BadgeMark
    /// The version of the badged content; the server raises it when there is something new to see. A tapped badge stays
    /// hidden until a badge with a higher stamp arrives. A badge without a stamp reappears with the next list that
    /// contains it.
    public let stamp: Int64?

    /// Makes a badge.
    ///
    /// - Throws: `ClientServiceError.invalidArgument` for a number below 0 or above 1,000,000, and for a business or a
    ///   text of more than 64 characters (UTF-16 units).
    public init(
        path: BadgePath, business: String = "", mark: BadgeMark, stamp: Int64? = nil
    ) throws(ClientServiceError) {
        guard business.utf16.count <= ServiceLimits.wordUnits else {
            throw ClientServiceError(
                .invalidArgument, "the business of \(path) has more than \(ServiceLimits.wordUnits) characters")
        }
        switch mark {
        case .number(let number) where !(0...ServiceLimits.badgeNumber).contains(number):
            throw ClientServiceError(
                .invalidArgument, "the number of \(path) must be 0 to \(ServiceLimits.badgeNumber), not \(number)")
        case .text(let text) where text.utf16.count > ServiceLimits.wordUnits:
            throw ClientServiceError(
                .invalidArgument, "the text of \(path) has more than \(ServiceLimits.wordUnits) characters")
        default: break
        }
        self.path = path
        self.business = business
        self.mark = mark
        self.stamp = stamp
    }

    /// Whether the badge shows anything: a number of 0 and `none` show nothing.
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
                forKey: .style, in: members, debugDescription: "unknown badge style \(style)")
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
