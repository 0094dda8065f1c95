# The client modules for apps that use CocoaPods. Not run here: pods need macOS.
# The pod has the binary of xcframework.sh, because the packages below the modules have no pods of their own.
Pod::Spec.new do |s|
  s.name = 'MobileSyncKit'
  s.version = '0.1.0'
  s.summary = 'The client modules of Mobile Sync Service.'
  s.homepage = 'https://git.example.com/mobile-sync-service'
  s.license = { type: 'Apache-2.0', file: 'LICENSE' }
  s.author = 'The maintainers of Mobile Sync Service'
  # Where you put the file that xcframework.sh has written.
  s.source = { http: 'https://files.example.com/MobileSyncKit-0.1.0.zip' }
  s.ios.deployment_target = '16.0'
  s.swift_versions = ['6.0']
  s.vendored_frameworks = 'MobileSyncKit.xcframework'
  s.libraries = 'sqlite3', 'c++'
end
