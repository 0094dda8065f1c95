import BusMessages
import SyncModel

/// A connected device as the API and the pages show it.
struct DeviceItem: Encodable, Sendable {
    let deviceId: String
    /// Absent: no user is bound.
    let userId: String?
    let gateway: String
    /// `iOS`, `Android`, or `other`.
    let os: String
    let appVersion: String
    let foreground: Bool
    /// Whether the device is the owner of the user's single-device data.
    let owner: Bool
    let verdictValid: Bool
    /// The time of the connect, in milliseconds since 1970.
    let since: Int64

    // For pages alone.
    let sinceText: String
    let page: String
    let api: String
    let userPage: String?

    private enum CodingKeys: String, CodingKey {
        case deviceId, userId, gateway, os, appVersion, foreground, owner, verdictValid, since
    }

    init(_ row: Mss_Bus_V1_DeviceRow, of instanceID: InstanceID, _ words: PageTexts) {
        deviceId = row.deviceID
        userId = row.userID.isEmpty ? nil : row.userID
        gateway = row.gatewayID
        os =
            switch row.operatingSystem {
            case .ios: "iOS"
            case .android: "Android"
            case .any, .UNRECOGNIZED: words.text("otherSystem")
            }
        appVersion = row.appVersion
        foreground = row.foreground
        owner = row.owner
        verdictValid = row.validVerdict
        since = row.sinceMs
        sinceText = WallTime(milliseconds: row.sinceMs).text
        page = Paths.page(instanceID, "device", query: [("device", row.deviceID)])
        api = "/api/v1" + Paths.page(instanceID, "devices")
        userPage =
            row.userID.isEmpty
            ? nil : Paths.page(instanceID, "data", query: [("by", "user"), ("id", row.userID)])
    }
}
