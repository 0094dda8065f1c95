import BusMessages
import Foundation
import SwiftProtobuf

/// One envelope of each kind with every field set, so that golden bytes fix every field number and type.
enum BusSamples {
    static let target = Mss_Bus_V1_Target.with {
        $0.instanceID = "demo_app"
        $0.kind = .device
        $0.target = "d1"
    }

    static let oplog = Mss_Bus_V1_Oplog.with {
        $0.id = 1 << 40 | 7
        $0.thirdMessageID = "m-1"
        $0.payload = Data([0x00, 0xFF])
        $0.binary = true
        $0.operatingSystem = .android
        $0.minimumVersion = "1.2"
        $0.maximumVersion = "3"
        $0.validUntilMs = 1_700_000_000_000
        $0.createdAtMs = 1_690_000_000_000
        $0.persistent = true
    }

    static let channelState = Mss_Bus_V1_ChannelState.with {
        $0.channelID = 5
        $0.target = target
        $0.bizType = "UCHAT"
        $0.head = 9
        $0.syncPoint = 8
    }

    static let appends = [
        Mss_Bus_V1_AppendCommand.with {
            $0.correlation = 1
            $0.target = target
            $0.bizType = "UCHAT"
            $0.oplog = oplog
        }
    ]

    static let sessions: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 1
            $0.renewLease.gatewayID = "g1"
            $0.renewLease.epoch = 3
        },
        .with {
            $0.correlation = 2
            $0.open = .with {
                $0.gatewayID = "g1"
                $0.gatewayEpoch = 3
                $0.instanceID = "demo_app"
                $0.deviceID = "d1"
                $0.storeID = "s1"
                $0.userID = "u1"
                $0.operatingSystem = .ios
                $0.appVersion = "2.0"
                $0.foreground = true
                $0.connectionEpoch = 4
                $0.takesOwnership = true
                $0.verdictValidMs = 600_000
            }
        },
        .with {
            $0.correlation = 3
            $0.close.instanceID = "demo_app"
            $0.close.deviceID = "d1"
            $0.close.connectionEpoch = 4
        },
        .with {
            $0.correlation = 4
            $0.update = .with {
                $0.instanceID = "demo_app"
                $0.deviceID = "d1"
                $0.connectionEpoch = 4
                $0.foreground = true
                $0.verdictValidMs = 5
            }
        },
        .with {
            $0.correlation = 5
            $0.sweep.gatewayID = "g1"
            $0.sweep.since = "15:18:16"
        },
    ]

    static let fetches: [Mss_Bus_V1_FetchCommand] = [
        .with {
            $0.correlation = 1
            $0.page = .with {
                $0.channelID = 5
                $0.after = 6
                $0.limit = 64
                $0.newest = 10
                $0.operatingSystem = .ios
                $0.appVersion = "2.0"
                $0.ownerDeviceID = "d1"
                $0.anyDevice = true
            }
        },
        .with {
            $0.correlation = 2
            $0.history = .with {
                $0.channelID = 5
                $0.after = 6
                $0.before = 9
                $0.count = 20
                $0.oldestFirst = true
                $0.operatingSystem = .android
                $0.appVersion = "2.0"
                $0.ownerDeviceID = "d1"
            }
        },
        .with {
            $0.correlation = 3
            $0.summary.operatingSystem = .ios
            $0.summary.appVersion = "2.0"
            $0.summary.channels = [
                .with {
                    $0.channelID = 5
                    $0.deviceID = "d1"
                    $0.storeID = "s1"
                    $0.stored = 8
                    $0.ownerDeviceID = "d1"
                }
            ]
        },
    ]

    /// Replies to requests of devices.
    static let requestReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 2
            $0.history = .with {
                $0.entries = [oplog]
                $0.more = true
                $0.next = 7
                $0.head = 9
                $0.notOwner = true
            }
        },
        .with {
            $0.correlation = 3
            $0.summary.channels = [
                .with {
                    $0.head = 9
                    $0.syncPoint = 8
                    $0.last = oplog
                    $0.waiting = 1
                    $0.notOwner = true
                }
            ]
        },
    ]

    /// A device with two suspended Sync IDs.
    static let suspensions: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 2
            $0.open.deviceID = "d1"
            $0.open.suspended = ["NEWS", "UCHAT"]
        }
    ]

    /// A device that presents its secret to an instance with device secrets.
    static let deviceSecrets: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 3
            $0.open.deviceID = "d1"
            $0.open.deviceSecretDigest = Data([0x01, 0xFF])
            $0.open.bindsDevice = true
        }
    ]

    /// A connection with the number that its gateway gave it.
    static let connectionNumbers: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 5
            $0.open.deviceID = "d1"
            $0.open.connectionNumber = 300
            $0.open.registrationNumber = 2
            $0.open.deviceConnectionNumber = 7
        }
    ]

    /// A change of a session with the number that its gateway gave it.
    static let sessionUpdates: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 7
            $0.update.deviceID = "d1"
            $0.update.number = 300
        }
    ]

    /// A device that registers its token for wake-up pushes.
    static let pushTokens: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 6
            $0.open.deviceID = "d1"
            $0.open.pushToken.provider = 2
            $0.open.pushToken.token = "fcm:1"
        }
    ]

    /// A command that deletes the secret of a device id.
    static let deviceReleases: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 4
            $0.releaseDevice.instanceID = "demo_app"
            $0.releaseDevice.deviceID = "d1"
        }
    ]

    /// The reply that the device id belongs to another secret.
    static let wrongDeviceSecrets: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 3
            $0.session.wrongDeviceSecret = true
        }
    ]

    static let acks = [
        Mss_Bus_V1_AckCommand.with {
            $0.correlation = 1
            $0.channelID = 5
            $0.deviceID = "d1"
            $0.storeID = "s1"
            $0.upto = 9
        }
    ]

    static let instance = Mss_Bus_V1_Instance.with {
        $0.instanceID = "demo_app"
        $0.name = "Demo"
        $0.enabled = true
        $0.validatorURL = "http://t/v"
        $0.verdictLifetimeMs = 600_000
    }

    static let configuration = Mss_Bus_V1_SyncConfiguration.with {
        $0.instanceID = "demo_app"
        $0.bizType = "UCHAT"
        $0.description_p = "Chat"
        $0.kind = .globalDevice
        $0.multiDevice = true
        $0.persistent = true
        $0.threshold = 100
        $0.checksSession = true
        $0.online = true
    }

    static let controls: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.snapshot.knownVersion = 7
        },
        .with {
            $0.correlation = 2
            $0.putInstance = instance
        },
        .with {
            $0.correlation = 3
            $0.putConfiguration = configuration
        },
    ]

    static let validations = [
        Mss_Bus_V1_ValidateCommand.with {
            $0.correlation = 1
            $0.instanceID = "demo_app"
            $0.userID = "u1"
            $0.sessionID = "sid"
        }
    ]

    static let replies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.append = .with {
                $0.outcome = .duplicate
                $0.oplogID = 7
                $0.online = true
                $0.detail = "x"
                $0.validUntilMs = 8
                $0.createdAtMs = 9
            }
        },
        .with {
            $0.correlation = 2
            $0.lease.epoch = 3
        },
        .with {
            $0.correlation = 3
            $0.session = .with {
                $0.connectionEpoch = 4
                $0.channels = [channelState]
                $0.leaseLost = true
            }
        },
        .with {
            $0.correlation = 4
            $0.sweep.channels = [channelState]
        },
        .with {
            $0.correlation = 5
            $0.fetch = .with {
                $0.after = 6
                $0.upto = 9
                $0.entries = [oplog]
                $0.more = true
            }
        },
        .with {
            $0.correlation = 6
            $0.ack = .init()
        },
        .with {
            $0.correlation = 7
            $0.snapshot = .with {
                $0.version = 8
                $0.instances = [instance]
                $0.configurations = [configuration]
            }
        },
        .with {
            $0.correlation = 8
            $0.control.version = 9
            $0.control.refusal = "no"
        },
        .with {
            $0.correlation = 9
            $0.validate = .with {
                $0.verdict = .invalid
                $0.reason = "r"
            }
        },
        .with {
            $0.correlation = 10
            $0.failure.reason = "f"
            $0.failure.notAttempted = true
        },
    ]

    static let notices: [Mss_Bus_V1_GatewayNotice] = [
        .with {
            $0.oplogs = .with {
                $0.channelID = 5
                $0.target = target
                $0.bizType = "UCHAT"
                $0.after = 6
                $0.upto = 7
                $0.entries = [oplog]
            }
        },
        .with {
            $0.superseded.instanceID = "demo_app"
            $0.superseded.deviceID = "d1"
            $0.superseded.connectionEpoch = 4
        },
    ]

    static let facts: [Mss_Bus_V1_Fact] = [
        .with {
            $0.atMs = 1_700_000_000_001
            $0.channelID = 5
            $0.handedOut.deviceID = "d1"
            $0.handedOut.oplogIds = [7, 300]
        },
        .with {
            $0.atMs = 1_700_000_000_003
            $0.channelID = 5
            $0.confirmed.deviceID = "d1"
            $0.confirmed.oplogIds = [7]
        },
    ]

    static let figureFacts: [Mss_Bus_V1_Fact] = [
        .with {
            $0.atMs = 1_700_000_000_001
            $0.channelID = 6
            $0.handedOut.deviceID = "d1"
            $0.handedOut.oplogIds = [7]
            $0.handedOut.userID = "u1"
            $0.handedOut.operatingSystem = .android
            $0.handedOut.appVersion = "1.2"
        },
        .with {
            $0.atMs = 1_700_000_040_000
            $0.connected.gatewayID = "g1"
            $0.connected.instanceID = "demo_app"
            $0.connected.devices = 12
        },
    ]
}
