/// Where devices reach a gateway from outside.
struct DeviceAddress: Sendable {
    let host: String
    let port: Int
    /// The gateway's own page, which is a device in the browser; nil: gateways do not serve it.
    var page: String?
}
